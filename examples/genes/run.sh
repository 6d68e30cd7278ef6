#!/usr/bin/env bash
# Two shards, and an application that finds the shard of a row by its user, by its order, or by its own id.
. "$(dirname "$0")/../lib.sh"
need mariadb
example "$@"
export IDPROXY_PASSWORD=secret

mariadb_server db0 127.0.0.10:3306
mariadb_server db1 127.0.0.11:3306
schema schema.sql db0 db1
proxy proxy

# This is all that the application knows of shards: the address for a number, which is that of a user, an order or an item.
shards=(127.0.0.1:3307 127.0.0.1:3308)
home() { echo "${shards[$1 % ${#shards[@]}]}"; }

say "Users 7, 8 and 300 order something, each at the home of the user."
for user in 7 8 300; do
  sql "$(home $user)" "INSERT INTO orders (user_id, what) VALUES ($user, 'a book'), ($user, 'a pen')"
done

say "An order has the gene of its user."
for address in "${shards[@]}"; do sql "$address" "SELECT id, user_id, id % 256, user_id % 256 FROM orders"; done

say "An order is found by its id alone."
for order in 263 520 1068; do
  sql "$(home $order)" "SELECT id, user_id, what FROM orders WHERE id = $order"
done

say "200 more users, and each order is where its id leads."
declare -A orders
for user in {1000..1199}; do orders[$(home "$user")]+="INSERT INTO orders (user_id, what) VALUES ($user, 'a pen');"; done
all=0 found=0
for address in "${shards[@]}"; do
  client "$address" -e "${orders[$address]}"
  for order in $(client "$address" -N -e "SELECT id FROM orders"); do
    all=$((all + 1))
    [ "$(home "$order")" != "$address" ] || found=$((found + 1))
  done
done
echo "$all orders, and $found are at the home of their ids"

say "Items have the gene of their order, which is that of the user: they are on the same shard."
sql "$(home 263)" "INSERT INTO items (order_id, article) VALUES (263, 'cover'), (263, 'pages')" "SELECT id, order_id, id % 256 FROM items"

say "A row at the wrong shard is refused, and nothing is sent."
sql "${shards[0]}" "INSERT INTO orders (user_id, what) VALUES (7, 'a mistake')" || true
finish
