#!/usr/bin/env bash
# A Spider head with two nodes behind idproxy.
. "$(dirname "$0")/../lib.sh"
need spider
example "$@"

mariadb_server node0 127.0.0.10:3306
mariadb_server node1 127.0.0.11:3306; node1=$pid
schema node.sql node0 node1
mariadb_server head 127.0.0.9:3306 --plugin-dir="$tools/mariadb/spider" --plugin-load-add=ha_spider --local-infile=1
schema head.sql head
proxy proxy

say "An even id is on node 0, an odd one on node 1."
sql 127.0.0.1:3307 "INSERT INTO orders (customer) VALUES ('ann'), ('bob')" "SELECT id, id % 2 AS node, customer FROM orders WHERE id=LAST_INSERT_ID()"
sql 127.0.0.10:3306 "SELECT id, id % 2, customer FROM orders"
sql 127.0.0.11:3306 "SELECT id, id % 2, customer FROM orders"

# try TABLE STATEMENT runs a statement for a table that has a row with id 5, and prints the new rows in the order of their ids,
# with a star behind that of LAST_INSERT_ID().
try() {
  client 127.0.0.1:3307 --local-infile=1 --force -N -e "DELETE FROM $1; INSERT INTO $1 VALUES (5, 'old');
    ${2//ORDERS/$1}; SELECT 'last', LAST_INSERT_ID(); SELECT 'row', id, customer FROM $1 WHERE id > 100 ORDER BY id" 2>&1 |
    awk '/^ERROR/ { all = all " " $2 } $1 == "last" { last = "id " $2 } $1 == "row" { all = all " " $3 ("id " $2 == last ? "*" : "") }
      END { print all ? substr(all, 2) : "none" }'
}

say "New rows in the order of their ids; the one with a star has LAST_INSERT_ID()."
printf 'eve\nfay\n' >"$work/rows"
printf '%-40s%-18s%s\n' "" "Spider" "a table of the head"
while IFS='|' read -r form statement; do
  printf '%-40s%-18s%s\n' "$form" "$(try orders "$statement")" "$(try local_orders "$statement")"
done <<END
VALUES|INSERT INTO ORDERS (customer) VALUES ('ann'), ('bob')
NULL, 0 and an explicit id|INSERT INTO ORDERS VALUES (NULL, 'ann'), (700, 'bob'), (0, 'cid')
IGNORE, the first row is there|INSERT IGNORE INTO ORDERS VALUES (5, 'ann'), (NULL, 'bob'), (NULL, 'cid')
ON DUPLICATE KEY UPDATE, one is there|INSERT INTO ORDERS VALUES (5, 'ann'), (NULL, 'bob') ON DUPLICATE KEY UPDATE customer = 'new'
REPLACE|REPLACE INTO ORDERS (customer) VALUES ('ann'), ('bob')
INSERT ... SELECT|INSERT INTO ORDERS (customer) SELECT 'ann' UNION ALL SELECT 'bob'
PREPARE and EXECUTE|PREPARE p FROM 'INSERT INTO ORDERS (customer) VALUES (?), (?)'; SET @a = 'ann', @b = 'bob'; EXECUTE p USING @a, @b
LOAD DATA LOCAL INFILE|LOAD DATA LOCAL INFILE '$work/rows' INTO TABLE ORDERS (customer)
COMMIT|BEGIN; INSERT INTO ORDERS (customer) VALUES ('ann'), ('bob'); COMMIT
ROLLBACK|BEGIN; INSERT INTO ORDERS (customer) VALUES ('ann'), ('bob'); ROLLBACK
END

# counts TABLE prints how many rows node 0 and node 1 have.
counts() {
  local node
  printf '%-15s' "$1"
  for node in 127.0.0.10:3306 127.0.0.11:3306; do printf '%9s' "$(client "$node" -N -e "SELECT COUNT(*) FROM $1")"; done
  echo
}

say "100 INSERTs of one row: as many go to each node."
client 127.0.0.1:3307 -e "DELETE FROM orders; $(printf "INSERT INTO orders (customer) VALUES ('%s');" {1..100})"
counts orders

say "1,000 ids of one hour, one every 3.6 s: with HASH(id) each node has its half, with KEY(id) one node has them all."
# From 2020 to 24 November 2026 these are so many milliseconds.
hour="SELECT (217641600000 + 3600 * seq << 22) + (1 << 12) + seq, 'load' FROM seq_0_to_999"
root head shop -e "DELETE FROM orders; INSERT INTO orders $hour; INSERT INTO orders_by_key $hour"
counts orders
counts orders_by_key

say "Node 1 is away: rows with an odd id cannot go in."
stop "$node1"
for customer in ann bob; do sql 127.0.0.1:3307 "INSERT INTO orders (customer) VALUES ('$customer')" || true; done
finish
