#!/usr/bin/env bash
# Two shards, and idproxy as a service of systemd with sockets that systemd opens. It runs in the bare Debian that run.sh boots.
IDPROXY=idproxy EXAMPLE_NET=127.0.0
. ./lib.sh
example
export DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes

mariadb_server db0 127.0.0.10:3306
mariadb_server db1 127.0.0.11:3306
schema schema.sql db0 db1

# do_it TEXT shows commands with what they print.
do_it() {
  printf '$ %s\n' "$1"
  eval "$1" 2>&1
}

# the_service says which process it is.
the_service() { systemctl show -P MainPID idproxy.service; }

say "The package brings the program, the units, a user and a folder for its state, and starts the service."
do_it 'apt-get -qq install ./idproxy_*.deb >/dev/null'
do_it 'systemctl is-active idproxy.service'

say "The configuration, the password in a file beside it, and the sockets."
do_it 'install -m 0640 -g idproxy idproxy.yaml /etc/idproxy/idproxy.yaml'
do_it 'install -m 0640 -g idproxy /dev/stdin /etc/idproxy/password <<<secret'
do_it 'install -m 0644 -D shards.conf /etc/systemd/system/idproxy.socket.d/shards.conf'
cd / # from here on idproxy finds its configuration in /etc/idproxy
do_it 'idproxy check --online | tail -n 1'
do_it 'systemctl stop idproxy.service'
do_it 'idproxy source create --all'
do_it 'systemctl daemon-reload'
do_it 'systemctl --quiet enable --now idproxy.socket'

say "systemd listens, and starts idproxy when the first client comes."
do_it 'systemctl is-active idproxy.service' || true
sql 127.0.0.1:3307 "INSERT INTO orders (customer) VALUES ('ann')" "SELECT LAST_INSERT_ID()"
sql 127.0.0.1:3308 "INSERT INTO orders (customer) VALUES ('bob')" "SELECT LAST_INSERT_ID()"
do_it 'systemctl is-active idproxy.service'

# under_load TEXT does something while four clients connect, insert and leave, and says how many connections were refused.
under_load() {
  load 127.0.0.1:3307 127.0.0.1:3308
  loaded 40
  do_it "$1"
  loaded 40
  end_load
  echo "$(grep -c 'ERROR 2002' "$work/errors") connections were refused"
}

say "Another configuration is read, while four clients connect, insert and leave."
do_it "sed -i 's/step: 1000/step: 5000/' /etc/idproxy/idproxy.yaml"
under_load 'systemctl reload idproxy.service'
journalctl -o cat -u idproxy.service | grep -o 'sources.order_id.segment.step: .*[0-9]'

say "The program that is installed now takes over, as when a newer package is installed."
before=$(the_service)
under_load 'idproxy upgrade'
[ "$before" != "$(the_service)" ]

say "A restart: whoever connects meanwhile waits in the sockets of systemd."
under_load 'systemctl restart idproxy.service'

say "A restart without these sockets: clients are refused."
do_it 'systemctl --quiet disable --now idproxy.socket'
under_load 'systemctl restart idproxy.service'

say "The end. Where there are sockets they go with the service, or the next client starts it again."
do_it 'systemctl stop idproxy.socket idproxy.service'
sql 127.0.0.1:3307 "INSERT INTO orders (customer) VALUES ('cid')" || true

say "What the servers have."
twice 127.0.0.10:3306 127.0.0.11:3306
