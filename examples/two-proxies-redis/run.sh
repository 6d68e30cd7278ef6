#!/usr/bin/env bash
# Two shards, two idproxies that have worker numbers from Redis, HAProxy in front of them.
. "$(dirname "$0")/../lib.sh"
need mariadb redis haproxy
example "$@"

mariadb_server db0 127.0.0.10:3306
mariadb_server db1 127.0.0.11:3306
schema schema.sql db0 db1
redis_server 127.0.0.20:6379

say "Worker numbers 0 to 15, once, before the first idproxy starts."
put_for a 127.0.0.1
ask a worker add 16 --new-pool

proxy a 127.0.0.1; a=$pid
proxy b 127.0.0.2
haproxy_server 127.0.0.3:3307

say "Ids have the time, the worker number of the proxy, and a sequence."
sql 127.0.0.1:3307 "INSERT INTO orders (customer) VALUES ('ann')" "SELECT id, id >> 12 & 1023 AS worker FROM orders WHERE id=LAST_INSERT_ID()"
sql 127.0.0.2:3308 "INSERT INTO orders (customer) VALUES ('bob')" "SELECT id, id >> 12 & 1023 AS worker FROM orders WHERE id=LAST_INSERT_ID()"

say "Proxy a is killed and started again while four clients insert through HAProxy. It takes up the number that it had."
load 127.0.0.3:3307 127.0.0.3:3308
loaded 40
kill -9 "$a"
loaded 20
proxy a 127.0.0.1
loaded 40
end_load
sql 127.0.0.1:3307 "INSERT INTO orders (customer) VALUES ('cid')" "SELECT id >> 12 & 1023 AS worker FROM orders WHERE id=LAST_INSERT_ID()"

say "What the servers have."
twice 127.0.0.10:3306 127.0.0.11:3306
finish
