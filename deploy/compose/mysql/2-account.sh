# Run once by the mysql image, which reads this file itself: idproxy's account, whose password is in a file. It may write to its own
# database, and read MAX(id) of tables before it numbers them.
# shellcheck shell=bash
password=$(</run/secrets/idproxy)
password=${password//\\/\\\\}
docker_process_sql --database=mysql <<END
CREATE USER idproxy IDENTIFIED BY '${password//\'/\\\'}';
GRANT ALL PRIVILEGES ON idproxy.* TO idproxy;
GRANT SELECT ON shop.* TO idproxy;
END
