#!/bin/bash
# Runs inside a bare Debian that has systemd and MariaDB: a package is installed, used, upgraded, removed and installed
# again. Each step says what it is and when; the first that fails ends the walk.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
config=/etc/idproxy/idproxy.yaml
began=$SECONDS

trap 'echo "line $LINENO failed"; systemctl status --no-pager idproxy.service; journalctl --no-pager -o short-precise | tail -n 60 | cut -c1-170' ERR

step() { echo "== $((SECONDS - began)) s: $*"; }
want() { [ "$2" = "$3" ] || { echo "$1: got '$2', want '$3'"; return 1; }; }
service() { systemctl show -P "$1" idproxy.service; }
through() { mariadb -h 127.0.0.1 -P 3307 -uapp -papp -N shop -e "$1"; }

# listed are all names of files, users and groups, but for those that the system itself makes while it runs.
listed() {
  find / -xdev -not -path '/var/log/*' -not -path '/var/cache/*' -not -path '/var/lib/mysql/*' -not -path '/var/lib/dpkg/*' \
    -not -path '/var/lib/apt/*' -not -path '/tmp/*' -not -path '/var/tmp/*' -not -path '/run/*' -not -path '/walk/*' \
    -not -path '/var/lib/systemd/*/*' -not -path '/root/*' -printf '%p\n'
  find /var/lib/systemd -name '*idproxy*'
  cut -d: -f1 /etc/passwd /etc/group
}

# until_done COMMAND ... tries for a minute.
until_done() {
  for _ in $(seq 300); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.2
  done
  "$@"
}

step "the server"
until_done mariadb -e 'SELECT 1'
mariadb -e "CREATE DATABASE shop; CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, customer VARCHAR(40));
  CREATE USER app@localhost IDENTIFIED BY 'app'; GRANT ALL ON shop.* TO app@localhost;
  CREATE USER idproxy@localhost IDENTIFIED BY 'secret'; GRANT SELECT ON *.* TO idproxy@localhost"
rm -f /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow-
listed | sort >/walk/before

step "install"
apt-get -qq -y install /walk/idproxy.deb
want "the service" "$(service ActiveState)" active
want "it starts with the system" "$(systemctl is-enabled idproxy.service)" enabled
idproxy --version
systemd-analyze verify --man=no idproxy.service
idproxy check
runuser -u idproxy -- idproxy check
! runuser -u nobody -- cat $config || { echo "everybody reads $config"; exit 1; }
! runuser -u idproxy -- touch /etc/idproxy/x || { echo "the service can change /etc/idproxy"; exit 1; }
want "the relay" "$(through 'SELECT 1')" 1
idproxy status
[ -s /usr/share/man/man1/idproxy-serve.1.gz ]

step "configure"
install -m 0640 -g idproxy /dev/null /etc/idproxy/password
echo secret >/etc/idproxy/password
idproxy init --force --integer-keys --server shard0=127.0.0.1:3306 --account idproxy --password-file /etc/idproxy/password $config
grep -q "^admin:" $config # it keeps that of the package
[ -s "$(sed -n '1s/^# yaml-language-server: $schema=//p' $config)" ] # editors find the schema
idproxy check --online
systemctl reload idproxy
until_done bash -c "journalctl -u idproxy | grep -q 'configuration reloaded'"

step "a row"
through "INSERT INTO orders (customer) VALUES ('ann'), ('bob')"
first=$(through "SELECT MIN(id) FROM orders")
[ "$first" -ge 100000 ]
want "rows" "$(mariadb -N -e "SELECT COUNT(*) FROM shop.orders WHERE id IN ($first, $first + 1)")" 2
step "rows went in through the service of the package"

step "the sandbox"
pid=$(service MainPID)
want "system calls are filtered, and no privilege can be had" "$(awk '/^(CapEff|CapBnd|NoNewPrivs|Seccomp):/ { print $1 $2 }' /proc/$pid/status | xargs)" \
  "CapEff:0000000000000000 CapBnd:0000000000000000 NoNewPrivs:1 Seccomp:2"
want "files that are not its own" "$(awk '$5 ~ "^/(usr|etc)?$" && $6 !~ "^ro" { print $5 }' /proc/$pid/mountinfo)" ""
systemd-analyze security --threshold=20 --no-pager idproxy.service | tail -n 1

step "a second process, by the template"
install -d -m 0750 -o idproxy -g idproxy /etc/idproxy-b
cat >/etc/idproxy-b/idproxy.yaml <<END
listeners: [{listen: 127.0.0.1:3317, upstream: 127.0.0.1:3306}]
admin: {socket: unix:/run/idproxy-b/admin.sock}
stores: {local: {file: {dir: /var/lib/idproxy-b/data}}}
sources: {b: {segment: {store: local, start: 900000000}}}
rules: [{table: shop.b, column: id, source: b}]
END
mariadb -e 'CREATE TABLE shop.b (id BIGINT PRIMARY KEY, v INT)'
install -d -m 0700 -o idproxy -g idproxy /var/lib/idproxy-b
idproxy source create --all --force --config /etc/idproxy-b/idproxy.yaml
systemctl start idproxy@b
want "an id of the second" "$(mariadb -h 127.0.0.1 -P 3317 -uapp -papp -N shop -e 'INSERT INTO b (v) VALUES (1); SELECT id FROM b')" 900000000
idproxy status --config /etc/idproxy-b/idproxy.yaml
idproxy status
mariadb -e 'DROP TABLE shop.b'

step "the password by a credential, which only root can read"
[ "$(grep -c '{file:[^}]*password}' $config)" -gt 0 ] || { cat $config; exit 1; }
mv /etc/idproxy/password /walk/password
chown root:root /walk/password
chmod 0600 /walk/password
sed -i 's/{file:[^}]*password}/{credential:db}/' $config
! idproxy check >/walk/said || { echo "check finds a credential that is not there"; exit 1; }
grep -q 'there are no credentials: add LoadCredential=db:PATH' /walk/said
mkdir /etc/systemd/system/idproxy.service.d
printf '[Service]\nLoadCredential=db:/walk/password\n' >/etc/systemd/system/idproxy.service.d/password.conf
systemctl daemon-reload
systemctl restart idproxy
idproxy check --online
runuser -u idproxy -- idproxy check --online
! runuser -u nobody -- cat /run/credentials/idproxy.service/db || { echo "everybody reads the password"; exit 1; }
want "sessions with the credential" "$(through 'SELECT COUNT(*) FROM orders')" 2
systemctl reload idproxy
idproxy status

# The next version brings another configuration: dpkg asks whose to take where nobody has said it.
step "upgrade, in the middle of a transaction"
dpkg-deb -R /walk/idproxy.deb /walk/next
sed -i 's/^Version: .*/&+next/' /walk/next/DEBIAN/control
echo '# as of the next version' >>/walk/next/etc/idproxy/idproxy.yaml
dpkg-deb -Znone -b /walk/next /walk/next.deb
old=$(service MainPID)
coproc SESSION { mariadb --unbuffered -h 127.0.0.1 -P 3307 -uapp -papp -N shop; }
session=$SESSION_PID
echo "START TRANSACTION; INSERT INTO orders (customer) VALUES ('cid'); SELECT 7;" >&"${SESSION[1]}"
read -r -t 60 said <&"${SESSION[0]}"
dpkg --force-confold -i /walk/next.deb
[ "$old" != "$(service MainPID)" ] || { echo "process $old is still the service"; exit 1; }
want "the service" "$(service ActiveState)" active
grep -q shard0 $config
grep -q 'as of the next version' $config.dpkg-dist
through "INSERT INTO orders (customer) VALUES ('dan')"
echo "INSERT INTO orders (customer) VALUES ('eve'); SELECT 8; COMMIT;" >&"${SESSION[1]}"
read -r -t 60 said <&"${SESSION[0]}"
want "the transaction after the upgrade" "$said" 8
exec {SESSION[1]}>&-
wait "$session" || true # after its COMMIT the session was let go
want "rows" "$(mariadb -N -e 'SELECT COUNT(DISTINCT id) FROM shop.orders')" 5
greatest=$(mariadb -N -e 'SELECT MAX(id) FROM shop.orders')

step "remove"
journalctl -o cat -u idproxy | grep -c msg=stopped >/walk/stopped
apt-get -qq -y remove idproxy
want "the service" "$(systemctl is-active idproxy.service || true)" inactive
want "the second process" "$(systemctl is-active idproxy@b || true)" inactive
rm -r /etc/idproxy-b /var/lib/idproxy-b
want "programs that stopped in order, and were not killed" "$(journalctl -o cat -u idproxy | grep -c msg=stopped)" $(($(cat /walk/stopped) + 1))
[ -e $config ] && [ -e /var/lib/idproxy/data/segments ]

step "install again, over the configuration that stayed"
cp $config /walk/idproxy.yaml
dpkg --force-confold -i /walk/next.deb
cmp $config /walk/idproxy.yaml
want "the service" "$(service ActiveState)" active
want "rows" "$(through 'SELECT COUNT(*) FROM orders')" 5
apt-get -qq -y remove idproxy

step "purge"
cp -a /etc/idproxy /walk/kept
rm -r /etc/systemd/system/idproxy.service.d
apt-get -qq -y purge idproxy 2>&1 | tee /walk/purged
grep -q '/var/lib/idproxy stays' /walk/purged
! grep -q '/etc/idproxy stays' /walk/purged
rm -f /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow-
listed | sort >/walk/after
left=$(comm -13 /walk/before /walk/after)
echo "$left" | grep -v '^/var/lib/idproxy' && { echo "purge leaves these behind"; exit 1; }
want "the owner of what stays" "$(stat -c %U /var/lib/idproxy/data)" root
touch /etc/idproxy.left
listed | sort | comm -13 /walk/before - | grep -qx /etc/idproxy.left || { echo "what is left behind is not found"; exit 1; }
rm /etc/idproxy.left

step "install again, over the state that stayed, beside a configuration that was there before"
useradd --system other # idproxy gets another number than before
groupadd --system idproxy
install -D -m 0640 -g idproxy /walk/kept/idproxy.yaml $config
install -m 0640 -g idproxy /walk/password /etc/idproxy
sed -i 's/{credential:db}/{file:password}/' $config
cp $config /walk/idproxy.yaml
apt-get -qq -y -o Dpkg::Options::=--force-confold install /walk/idproxy.deb
cmp $config /walk/idproxy.yaml
mariadb -e 'DELETE FROM shop.orders'
systemctl restart idproxy
until_done through "INSERT INTO orders (customer) VALUES ('flo')"
next=$(through 'SELECT MIN(id) FROM orders')
[ "$next" -gt "$greatest" ] || { echo "id $next came after $greatest"; exit 1; }
journalctl -u idproxy -p warning --no-pager -q || true
step "done"
