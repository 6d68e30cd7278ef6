#!/usr/bin/env bash
# What the pods of the chart and of the sidecar would run, with the files that they would have.
. "$(dirname "$0")/../lib.sh"
need mariadb
example "$@"
export IDPROXY_PASSWORD=secret ADMIN_TOKEN=0123456789abcdef

# render prints what `helm template` would. It is made of Helm's own packages.
echo "example: building a renderer of charts, which takes some minutes the first time" >&2
go build -C "$top/integration/kubernetes" -o "$work/render" ./render
render() { (cd "$folder" && "$work/render" "$@"); }

mariadb_server db0 127.0.0.10:3306
mariadb_server db1 127.0.0.11:3306
schema schema.sql db0 db1

# pod NAME HOST MANIFESTS gives a pod the idproxy.yaml of its ConfigMap. Each pod has an address of its own, as in a cluster.
pod() {
  mkdir -p "$work/$1"
  here "$2" >"$work/$1/host"
  render -config "${@:3}" |
    sed -E "s/(listen: )\"(127.0.0.1)?:/\1\"$(here "$2"):/; s/db([01]):3306/$(here 127.0.0.1)\1:3306/; s|/var/lib/idproxy|$work/$1|" >"$work/$1/idproxy.yaml"
}

say "What helm install makes."
render chart | grep -E '^(kind|  name):' | paste - - | tr -s ' \t' ' '

say "A gateway: the number of a pod is its worker number."
for n in 0 1; do
  pod "idproxy-$n" "127.0.0.$((n + 1))" chart workers.yaml
  variables=$(render -pod $n chart workers.yaml)
  echo "idproxy-$n has $variables"
  export "${variables?}"
  ask "idproxy-$n" check | grep -v warning
  serve "idproxy-$n" "127.0.0.$((n + 1))"
  [ $n = 1 ] || first=$pid
done
for n in 1 2; do sql "127.0.0.$n:3307" "INSERT INTO orders (customer) VALUES ('ann')" "SELECT id, id >> 12 & 1023 AS worker FROM orders WHERE id=LAST_INSERT_ID()"; done

say "A pod that is deleted is not ready at once, and takes clients for drain.delay."
kill "$first"
until_ok idproxy-0 eval '! ready 127.0.0.1:9307'
sql 127.0.0.1:3308 "INSERT INTO orders (customer) VALUES ('bob')" "SELECT id >> 12 & 1023 AS worker FROM orders WHERE id=LAST_INSERT_ID()"
stop "$first"

say "Sidecars: each start of a pod takes a number of its own."
for name in x y; do pod "shop-$name" "127.0.0.$([ $name = x ] && echo 3 || echo 4)" sidecar.yaml; done
ask shop-x worker add 0 --new-pool
serve shop-x 127.0.0.3
serve shop-y 127.0.0.4
for n in 3 4; do sql "127.0.0.$n:3307" "INSERT INTO carts (customer) VALUES ('cid')" "SELECT id, id >> 12 & 1048575 AS worker FROM carts WHERE id=LAST_INSERT_ID()"; done

say "What the servers have."
twice 127.0.0.10:3306 127.0.0.11:3306
finish
