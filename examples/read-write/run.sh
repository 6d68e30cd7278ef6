#!/usr/bin/env bash
# A primary and two replicas: writes through idproxy, reads beside it.
. "$(dirname "$0")/../lib.sh"
need mariadb haproxy
example "$@"
export IDPROXY_PASSWORD=secret

binlog=(--log-bin=binlog --log-slave-updates --binlog-format=statement)
mariadb_server primary 127.0.0.10:3306 --server-id=10 "${binlog[@]}"; primary=$pid
mariadb_server replica1 127.0.0.11:3306 --server-id=11 --read-only=1 "${binlog[@]}"
mariadb_server replica2 127.0.0.12:3306 --server-id=12 --read-only=1 "${binlog[@]}"
schema replica.sql replica1 replica2
schema schema.sql primary

# caught_up REPLICA PRIMARY waits until a replica has all that its primary has.
caught_up() {
  local all
  all=$(root "$2" -N -e "SELECT @@gtid_binlog_pos")
  root "$1" -e "DO MASTER_GTID_WAIT('$all', 60)"
}

caught_up replica1 primary
caught_up replica2 primary
proxy proxy
haproxy_server 127.0.0.3:3307
until_ok haproxy client 127.0.0.3:3317 -e "SELECT 1"

say "Writes go to the primary. LAST_INSERT_ID() is asked where the row was written."
sql 127.0.0.3:3307 "INSERT INTO orders (customer) VALUES ('ann'), ('bob')" "SELECT LAST_INSERT_ID(), @@server_id"

say "Replicas have the same ids, also where the primary writes statements into its binlog: the ids stand in them."
caught_up replica1 primary
caught_up replica2 primary
sql 127.0.0.3:3317 "SELECT id, customer, @@read_only FROM orders"
root primary -N -e "SHOW BINLOG EVENTS" | grep -o 'INSERT INTO orders.*'

say "The primary is lost, and somebody makes replica 1 the primary: ids go on above those that are there."
caught_up replica1 primary
stop "$primary"
root replica1 -e "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0"
root replica2 -e "STOP SLAVE; CHANGE MASTER TO MASTER_HOST='$(here 127.0.0.11)'; START SLAVE"
until_ok proxy client 127.0.0.3:3307 -e "INSERT INTO orders (customer) VALUES ('cid')"
caught_up replica2 replica1
sql 127.0.0.3:3317 "SELECT id, customer FROM orders"
ask proxy source list
finish
