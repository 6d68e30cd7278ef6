#!/usr/bin/env bash
# Two shards, two idproxies that share a table of ranges, HAProxy in front of them.
. "$(dirname "$0")/../lib.sh"
need mariadb haproxy
example "$@"
export IDPROXY_PASSWORD=secret ADMIN_TOKEN=0123456789abcdef

mariadb_server db0 127.0.0.10:3306 --innodb-flush-log-at-trx-commit=1 --sync-binlog=1
mariadb_server db1 127.0.0.11:3306
schema schema.sql db0 db1
put_for a 127.0.0.1

say "The series is opened once, above the ids of all shards."
ask a source create --all
proxy a 127.0.0.1; a=$pid
proxy b 127.0.0.2; b=$pid
haproxy_server 127.0.0.3:3307

say "Each proxy has a range of its own, so ids ascend in each of them."
sql 127.0.0.1:3307 "INSERT INTO orders (customer) VALUES ('ann')" "SELECT LAST_INSERT_ID()"
sql 127.0.0.2:3308 "INSERT INTO orders (customer) VALUES ('bob')" "SELECT LAST_INSERT_ID()"
ask a source list

say "Proxy a drains while four clients insert through HAProxy: it lets its sessions go, and takes new ones when it is told to."
load 127.0.0.3:3307 127.0.0.3:3308
loaded 40
ask a drain --wait
loaded 20
ask a resume
until_ok a ready 127.0.0.1:9307
loaded 40
end_load

say "Proxy a is stopped and started again while four clients insert through HAProxy."
load 127.0.0.3:3307 127.0.0.3:3308
loaded 40
stop "$a"
loaded 20
proxy a 127.0.0.1; a=$pid
loaded 40
end_load

say "Proxy b is killed. Statements that are on their way in it are lost, and all others go to a."
load 127.0.0.3:3307 127.0.0.3:3308
loaded 40
kill -9 "$b"
loaded 40
end_load

say "HAProxy can check by a login, too."
until_ok haproxy client 127.0.0.3:3317 -e "SELECT 1"
sql 127.0.0.3:3317 "INSERT INTO orders (customer) VALUES ('cid')"

say "What the servers have."
twice 127.0.0.10:3306 127.0.0.11:3306
finish
