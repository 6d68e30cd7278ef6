#!/usr/bin/env bash
# Two shards behind one idproxy.
. "$(dirname "$0")/../lib.sh"
need mariadb
example "$@"

mariadb_server db0 127.0.0.10:3306
mariadb_server db1 127.0.0.11:3306
schema schema.sql db0 db1

say "A row with id 500 is on shard 1 before idproxy comes."
root db1 -e "INSERT INTO shop.orders VALUES (500, 'old')"

export IDPROXY_PASSWORD=secret
proxy proxy

say "No id comes twice, whichever shard a row goes to, and none that is there already."
sql 127.0.0.1:3307 "INSERT INTO orders (customer) VALUES ('ann'), ('bob')" "SELECT LAST_INSERT_ID()"
sql 127.0.0.1:3308 "INSERT INTO orders (customer) VALUES ('cid')" "SELECT LAST_INSERT_ID()"
sql 127.0.0.1:3307 "INSERT INTO orders (customer) VALUES ('dan')"

say "What the servers have."
sql 127.0.0.10:3306 "SELECT * FROM orders"
sql 127.0.0.11:3306 "SELECT * FROM orders"
ask proxy source list
finish
