# What all examples share: servers in a temporary folder, and statements that are shown with their results.
#
#   . ../lib.sh
#   example "$@"
#
# Each host of an example is a loopback address: its files name 127.0.0.1, 127.0.0.10 and so on, with the ports that these
# programs usually have. Where somebody listens there, another network, such as 127.0.1, takes the place of 127.0.0.
# EXAMPLE_NET says which to take.
# shellcheck shell=bash
set -euo pipefail

folder=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tools=$top/.tools
PATH=$PATH:/usr/sbin:/sbin:$tools/etcd:$tools/redis

say() { printf '\n# %s\n' "$*"; }
die() { printf 'example: %s\n' "$*" >&2; exit 1; }

# example [--keep] makes the temporary folder and looks for a network. With --keep all stays until Ctrl-C.
example() {
  keep=no
  case "$*" in --keep) keep=yes ;; "") ;; *) die "the only argument is --keep" ;; esac
  work=$(mktemp -d "${TMPDIR:-/tmp}/idproxy-example.XXXXXX")
  started=()
  trap stop_all EXIT
  trap 'exit 130' INT TERM
  net=${EXAMPLE_NET:-$(free_network)}
  [ "$net" = 127.0.0 ] || echo "example: 127.0.0.N is $net.N in this run" >&2
  idproxy=${IDPROXY:-$top/bin/idproxy}
  [ -n "${IDPROXY-}" ] || { echo "example: building idproxy" >&2 && make -s -C "$top" build; }
}

# need PROGRAM ... installs what an example runs.
need() { "$top/scripts/install-servers.sh" "$@"; }

free_network() {
  local n end
  for n in $(seq 0 200); do
    for end in $(addresses); do
      if (: >"/dev/tcp/127.0.$n.${end/://}") 2>/dev/null; then continue 2; fi
    done
    echo "127.0.$n"
    return
  done
  die "no loopback network is free"
}

# addresses prints the last number of the host and the port of each address that the example's files name.
addresses() { grep -rhoE '127\.0\.0\.[0-9]+:[0-9]+' "$folder" | cut -d. -f4 | sort -u; }

# here TEXT replaces the network in a text; there does the opposite with what is piped through it, and takes away $work.
here() { printf '%s' "${1//127.0.0./$net.}"; }
there() { sed -u "s/${net//./\\.}\\./127.0.0./g; s|$work/||g"; }

# put FILE FOLDER copies a file of the example, for the network of this run.
put() {
  mkdir -p "$work/$2"
  here "$(<"$folder/$1")" >"$work/$2/$1"
  echo >>"$work/$2/$1"
}

# run NAME PROGRAM ... starts a program in the background, with its log in NAME.log; $pid is its process.
run() {
  local name=$1
  shift
  "$@" >>"$work/$name.log" 2>&1 </dev/null &
  pid=$!
  disown # bash says nothing when it is killed
  started+=("$pid")
}

# until_ok NAME COMMAND ... waits until the command succeeds, and shows the program's log when it does not.
until_ok() {
  local name=$1 try
  shift
  for try in $(seq 600); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  tail -n 20 "$work/$name.log" >&2
  die "$name: not in time: $*"
}

is_open() { (: >"/dev/tcp/${1/://}"); }

# mariadb_server NAME ADDRESS [ARGUMENT ...] starts a MariaDB that keeps nothing behind.
mariadb_server() {
  local name=$1 address
  address=$(here "$2")
  shift 2
  mkdir -p "$work/$name"
  cp -r "$(empty_data)" "$work/$name/data"
  run "$name" mariadbd --no-defaults "${as_root[@]}" --datadir="$work/$name/data" --socket="$work/$name/socket" \
    --bind-address="${address%:*}" --port="${address#*:}" --skip-name-resolve --innodb-log-file-size=8M \
    --innodb-buffer-pool-size=24M "$@"
  until_ok "$name" root "$name" -e "SELECT 1"
}

# schema FILE NAME ... has servers run a file of the example.
schema() {
  local name
  for name in "${@:2}"; do
    put "$1" "$name"
    root "$name" <"$work/$name/$1"
  done
}

as_root=()
[ "$(id -u)" != 0 ] || as_root=(--user=root)

# root NAME ... is the administrator's client of a server.
root() { mariadb --no-defaults --user=root --socket="$work/$1/socket" "${@:2}"; }

# empty_data prints a folder with the tables of an empty server, which is made once.
empty_data() {
  local data
  data=$tools/data/example-$(stat -L -c %Y "$(command -v mariadbd)")
  mkdir -p "$tools/data"
  (
    flock 9
    [ -d "$data" ] || {
      rm -rf "$data.new"
      mariadb-install-db --no-defaults "${as_root[@]}" --datadir="$data.new" --skip-test-db --skip-name-resolve \
        --auth-root-authentication-method=normal --innodb-log-file-size=8M >"$work/install-db.log" 2>&1 ||
        { cat "$work/install-db.log" >&2; exit 1; }
      mv "$data.new" "$data"
    }
  ) 9>"$data.lock"
  echo "$data"
}

# redis_server ADDRESS starts a Redis that forgets nothing.
redis_server() {
  local address
  address=$(here "$1")
  mkdir -p "$work/redis"
  run redis redis-server --bind "${address%:*}" --port "${address#*:}" --dir "$work/redis" --appendonly yes \
    --appendfsync always --save "" --maxmemory-policy noeviction
  until_ok redis is_open "$address"
}

# etcd_server HOST starts a cluster of one member.
etcd_server() {
  local host
  host=$(here "$1")
  run etcd etcd --data-dir "$work/etcd" --listen-client-urls "http://$host:2379" --advertise-client-urls "http://$host:2379" \
    --listen-peer-urls "http://$host:2380" --initial-advertise-peer-urls "http://$host:2380" --initial-cluster "default=http://$host:2380"
  until_ok etcd is_open "$host:2379"
}

# put_for NAME HOST gives the proxy NAME the example's idproxy.yaml, in a folder of its own, as on a host of its own.
put_for() {
  put idproxy.yaml "$1"
  here "$2" >"$work/$1/host"
}

# ready ADDRESS asks idproxy at its admin address whether clients may be sent to it.
ready() (
  address=$(here "$1")
  exec 8<>"/dev/tcp/${address/://}" # in a shell of its own, which ends when nobody listens
  printf 'GET /readyz HTTP/1.0\r\n\r\n' >&8
  read -r _ answer _ <&8
  [ "$answer" = 200 ]
)

# proxy NAME [HOST] starts idproxy with the example's idproxy.yaml.
proxy() {
  put_for "$1" "${2-127.0.0.1}"
  serve "$1" "${2-127.0.0.1}"
}

# serve NAME HOST starts the idproxy NAME with the configuration that it was given, and waits until it is ready.
serve() {
  HOST=$(<"$work/$1/host") run "$1" "$idproxy" serve --config "$work/$1/idproxy.yaml"
  until_ok "$1" ready "$2:9307"
}

# haproxy_server ADDRESS starts HAProxy with the example's haproxy.cfg and waits until it has a server at the address.
haproxy_server() {
  put haproxy.cfg haproxy
  run haproxy haproxy -db -f "$work/haproxy/haproxy.cfg"
  until_ok haproxy client "$1" -e "SELECT 1"
}

# client ADDRESS ... is the application's client.
client() {
  local address
  address=$(here "$1")
  mariadb --no-defaults --host="${address%:*}" --port="${address#*:}" --user=app --password=app shop "${@:2}"
}

# sql ADDRESS STATEMENT ... runs statements in one session, and shows them with what the server answers.
sql() {
  local address=$1 statement
  shift
  for statement; do printf '%s> %s\n' "$address" "$statement"; done
  client "$address" --force --table -e "$(printf '%s;\n' "$@")" 2>&1 | there
}

# ask NAME ... runs a command of idproxy with the configuration of the proxy NAME, and shows it with what it prints.
ask() {
  local name=$1
  shift
  printf '$ idproxy %s\n' "$*"
  HOST=$(<"$work/$name/host") "$idproxy" "$@" --config "$work/$name/idproxy.yaml" 2>&1 | there
}

# load ADDRESS ... has four clients connect, insert a row and leave, again and again, at the addresses in turn.
load() {
  local n said
  clients=()
  touch "$work/load" "$work/done" "$work/load.log"
  for n in 1 2 3 4; do
    while [ -e "$work/load" ]; do
      for address; do
        # What a client says is written at once: it writes a line in pieces, and so do the others.
        if said=$(client "$address" -e "INSERT INTO orders (customer) VALUES ('load')" 2>&1); then echo >>"$work/done"; else printf '%s\n' "$said" >>"$work/load.log"; fi
      done
    done &
    clients+=("$!")
  done
}

# loaded N waits until the clients have inserted N more rows.
loaded() { until_ok load done_are $(($(wc -l <"$work/done") + $1)); }
done_are() { [ "$(wc -l <"$work/done")" -ge "$1" ]; }

# end_load stops the clients and says how it went.
end_load() {
  rm "$work/load"
  wait "${clients[@]}"
  grep ERROR "$work/load.log" | there >"$work/errors" || true
  echo "$(wc -l <"$work/done") INSERTs done, $(wc -l <"$work/errors") failed"
  sort "$work/errors" | uniq -c
  rm "$work/done" "$work/load.log"
}

# twice ADDRESS ... looks at the rows of all shards.
twice() {
  local address
  for address; do client "$address" -N -e "SELECT id FROM orders"; done | sort -n >"$work/ids"
  echo "$(wc -l <"$work/ids") rows on $# servers, $(uniq -d "$work/ids" | wc -l) ids come twice"
}

# stop PID ... asks programs to end, and waits for that. One that does not is killed.
stop() {
  local one try
  kill "$@" 2>/dev/null || true
  for one; do
    for try in $(seq 1200); do
      kill -0 "$one" 2>/dev/null || continue 2
      sleep 0.1
    done
    echo "example: process $one has not ended within two minutes: it is killed" >&2
    kill -9 "$one" 2>/dev/null || true
  done
}

stop_all() {
  local status=$?
  trap '' INT TERM
  rm -f "$work/load"
  stop "${started[@]}"
  rm -rf "$work"
  exit "$status"
}

# finish ends the example, at Ctrl-C with --keep.
finish() {
  if [ "$keep" = yes ]; then
    say "all stays until Ctrl-C; configuration and logs are in $work"
    while :; do sleep 1; done
  fi
}
