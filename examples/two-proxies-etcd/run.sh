#!/usr/bin/env bash
# Two shards, two idproxies that give ids in one order with the help of etcd, HAProxy in front of them.
. "$(dirname "$0")/../lib.sh"
need mariadb etcd haproxy
example "$@"
export IDPROXY_PASSWORD=secret ORDER_TOKEN=0123456789abcdef

mariadb_server db0 127.0.0.10:3306
mariadb_server db1 127.0.0.11:3306
schema schema.sql db0 db1
etcd_server 127.0.0.20
put_for a 127.0.0.1

say "The series is opened once, above the ids of all shards."
ask a source create --all
proxy a 127.0.0.1; a=$pid
proxy b 127.0.0.2
haproxy_server 127.0.0.3:3307

say "Ids ascend over both proxies and both shards."
sql 127.0.0.1:3307 "INSERT INTO orders (customer) VALUES ('ann')" "SELECT LAST_INSERT_ID()"
sql 127.0.0.2:3308 "INSERT INTO orders (customer) VALUES ('bob')" "SELECT LAST_INSERT_ID()"
sql 127.0.0.1:3307 "INSERT INTO orders (customer) VALUES ('cid')" "SELECT LAST_INSERT_ID()"

say "Proxy a, which gives the ids, is stopped and started again while four clients insert through HAProxy."
load 127.0.0.3:3307 127.0.0.3:3308
loaded 40
stop "$a"
loaded 20
proxy a 127.0.0.1
loaded 40
end_load

say "An INSERT behind all of these has the greatest id of its shard, whichever proxy it goes through."
sql 127.0.0.3:3308 "INSERT INTO orders (customer) VALUES ('dan')" "SELECT 'the greatest' AS id FROM orders HAVING MAX(id)=LAST_INSERT_ID()"
twice 127.0.0.10:3306 127.0.0.11:3306
finish
