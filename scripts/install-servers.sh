#!/usr/bin/env bash
# Installs the programs that tests, benchmarks and the demo run. Does nothing for what is already there.
#
#   scripts/install-servers.sh WHAT ...
#
#   go        the Go of scripts/toolchain.sum in .tools/go, where none is new enough for go.mod: the one on PATH or Debian's
#             fetches it, and its hash is checked
#   mariadb   MariaDB server and client from Debian, without the package that sets up a system service; its ed25519
#             plugin and mariadb-dump are unpacked into .tools/mariadb
#   mariadb118
#             MariaDB 11.8 from Debian 13, unpacked into .tools/mariadb118 and run with its own C library, so that
#             nothing of the system is touched
#   spider    MariaDB's Spider engine from Debian, unpacked into .tools/mariadb/spider
#   mysql     MySQL 9.7 from Debian unstable, in .tools/mysql97 the same way
#   client    a command-line client, mysql or mariadb
#   clients   curl, and client libraries of other languages: compilers and interpreters with Debian's packages for MySQL, and
#             packages for Node.js, as integration/clients/node/package-lock.json has them, in .tools/clients
#   browser   Chromium, and axe-core in .tools/browser, as integration/observability/node/package-lock.json has it
#   gcc       a C compiler, without which Go has no race detector
#   icu       a C++ compiler and the library that Dolt is built with
#   haproxy   for benchmarks
#   sysbench  for benchmarks: a client that is libmariadb
#   shells    fish, zsh, and completion for bash
#   sandbox   strace, ip, and systemd-analyze, which needs no systemd that runs
#   bare      a Debian as small as debootstrap makes it, with systemd and MariaDB, packed in .tools/bare.tar; systemd-nspawn,
#             which boots it; rpm
#   docker    Docker's engine from Debian, unpacked into .tools/docker, so that no service of it runs; Compose and buildx, which
#             are Go modules
#   site      mkdocs-material, which builds the site of all pages
#   redis     Redis from Debian, without its system service
#   prometheus
#             promtool from Debian's package, unpacked into .tools/prometheus
#   etcd      etcd and its client from Debian, unpacked into .tools/etcd and .tools/etcd-client
#   zookeeper ZooKeeper from Debian and the libraries that it needs, unpacked into .tools/zookeeper; Java, if there is none
#
# Needs a Debian system; system packages need root or sudo. Those of all WHATs are installed at once, before anything else.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/.tools
PATH=$tools/go/bin:$PATH

say() { printf 'install: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else return 1
  fi
}

# only_debian TODO ends with what is to do on another system.
only_debian() {
  command -v apt-get >/dev/null && command -v dpkg >/dev/null && return
  die "this is $(. /etc/os-release 2>/dev/null && echo "$PRETTY_NAME" || uname -s), and only Debian's packages are known here: $*"
}

# Each packages_WHAT says with need which of Debian's packages are missing, and unpack_WHAT does what is left then.
missing=()
need() { missing+=("$@"); }

# install_missing installs packages as they are in the archive today: lists from a while ago lack security fixes, and tests
# know the servers that have them.
install_missing() {
  local packages
  packages=$(printf '%s\n' "${missing[@]}" | sort -u | xargs)
  only_debian "install by hand what these bring: $packages"
  [ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
    die "packages are missing, and you are not root and have no sudo. As root: apt-get update && apt-get install --no-install-recommends $packages"
  say "installing $packages"
  as_root apt-get -q update >"$tools/apt.log" 2>&1 </dev/null || say "apt-get update failed, its lists may be old"
  # shellcheck disable=SC2086 # they are words
  if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends $packages >>"$tools/apt.log" 2>&1 </dev/null; then
    tail -n 15 "$tools/apt.log" >&2
    die "could not install them. As root: apt-get update && apt-get install --no-install-recommends $packages"
  fi
}

# has PROGRAM ... is true when all are there, also where a user's PATH does not look for servers.
has() {
  local program
  for program; do PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || return 1; done
}

# reads_module GO is true when this Go is new enough for go.mod. One that fetches a newer one by itself does that, and says so.
reads_module() {
  "$1" list -m 2>&1 >/dev/null | { grep --line-buffered '^go: downloading' >&2 || true; }
  return "${PIPESTATUS[0]}"
}

packages_go() {
  if reads_module go; then return; fi
  if reads_module /usr/local/go/bin/go; then
    ln -sfn /usr/local/go "$tools/go"
  elif ! has go; then
    need golang-go
  fi
}

unpack_go() {
  if reads_module go; then return; fi
  local began=$SECONDS scratch version want got
  read -r _ version want < <(grep "linux-$(go env GOHOSTARCH) " scripts/toolchain.sum) ||
    die "there is no Go that is new enough for go.mod, and scripts/toolchain.sum has none for $(go env GOHOSTARCH): https://go.dev/dl"
  say "fetching ${version#*-} (70 MB) into .tools/go; that takes half a minute or so"
  scratch=$(mktemp -d "$tools/unpack.XXXXXX")
  # Outside of this module, which an old Go cannot read. Such a one knows nothing of toolchains: to it this is any module.
  got=$(cd / && GOPATH=$scratch GOMODCACHE=$scratch/modules GOFLAGS=-modcacherw GOTOOLCHAIN=local \
    go mod download -json "golang.org/toolchain@$version") || die "could not fetch ${version#*-}: $(sed -n 's/.*"Error": //p' <<<"$got")"
  got=$(sed -n 's/.*"Sum": "\(.*\)".*/\1/p' <<<"$got")
  [ "$got" = "$want" ] || die "${version#*-} has the hash $got, and scripts/toolchain.sum wants $want: it is not used"
  # A module has no files that can be run, and no go.mod below its own.
  scratch=$scratch/modules/golang.org/toolchain@$version
  chmod -R +x "$scratch"/{bin,pkg/tool}
  find "$scratch/src" -name _go.mod -execdir mv {} go.mod \;
  rm -rf "$tools/go"
  mv "$scratch" "$tools/go"
  say "${version#*-} is in .tools/go after $((SECONDS - began)) s"
}

packages_mariadb() { has mariadbd mariadb mariadb-install-db || need mariadb-server-core mariadb-client-core; }
unpack_mariadb() {
  only_debian "make run UPSTREAM=host:port needs no MariaDB here"
  local to=$tools/mariadb version
  version=$(dpkg-query -W -f '${Version}' mariadb-server-core)
  [ -e "$to/plugin/auth_ed25519.so" ] || take_from "mariadb-server=$version" usr/lib/mysql/plugin "$to/plugin"
  [ -e "$to/bin/mariadb-dump" ] || take_from "mariadb-client=$version" usr/bin "$to/bin"
}

# The engine is a plugin of Debian's server, and of its version.
packages_spider() { packages_mariadb; }
unpack_spider() {
  unpack_mariadb
  [ -e "$tools/mariadb/spider/ha_spider.so" ] ||
    take_from "mariadb-plugin-spider=$(dpkg-query -W -f '${Version}' mariadb-server-core)" usr/lib/mysql/plugin "$tools/mariadb/spider"
}

# take_from PACKAGE FOLDER TO unpacks one folder of a package that is not installed.
take_from() {
  say "unpacking $2 of $1 into .tools"
  local scratch
  scratch=$(mktemp -d "$tools/unpack.XXXXXX")
  if ! (cd "$scratch" && apt-get -q -o APT::Sandbox::User="$(id -un)" download "$1") >"$tools/apt.log" 2>&1; then
    as_root apt-get -q update >>"$tools/apt.log" 2>&1 </dev/null || true
    (cd "$scratch" && apt-get -q -o APT::Sandbox::User="$(id -un)" download "$1") >>"$tools/apt.log" 2>&1 ||
      { tail -n 15 "$tools/apt.log" >&2; die "could not download $1"; }
  fi
  dpkg -x "$scratch"/*.deb "$scratch/root"
  mkdir -p "${3%/*}"
  rm -rf "$3"
  cp -r "$scratch/root/$2" "$3"
}

# debian_archive prints the address that this machine's apt takes Debian from, whichever way it is written.
debian_archive() {
  local new=/etc/apt/sources.list.d/debian.sources old=/etc/apt/sources.list
  if [ -e "$new" ]; then
    awk '$1 == "URIs:" { print $2; exit }' "$new"
  elif [ -e "$old" ]; then
    awk '$1 == "deb" { sub(/\[[^]]*\]/, ""); print $2; exit }' "$old"
  fi
}

# unpack_apart FOLDER SUITE PACKAGE ... unpacks packages of another Debian release into a folder of .tools, with all that
# they depend on down to the C library. Of a package with a + in front it takes the package alone.
unpack_apart() {
  local root=$tools/$1 base=$tools/$1.new suite=$2 archive apt deb name whole=() alone=()
  shift 2
  [ "$(dpkg --print-architecture)" = amd64 ] || die "$root: only amd64 is supported"
  for name; do
    case $name in +*) alone+=("${name#+}") ;; *) whole+=("$name") ;; esac
  done
  rm -rf "$base"
  mkdir -p "$base"/{root,lists/partial,cache,debs/partial}
  : >"$base/status"
  archive=$(debian_archive)
  [ -n "$archive" ] || die "found no Debian archive in apt's sources"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive $suite main" >"$base/sources.list"
  # A package state of its own: apt resolves against an empty system and installs nothing, it only downloads.
  apt=(apt-get -q -o "Dir::Etc::sourcelist=$base/sources.list" -o Dir::Etc::sourceparts=/dev/null
       -o "Dir::State::Lists=$base/lists" -o "Dir::State::status=$base/status" -o "Dir::Cache=$base/cache"
       -o "Dir::Cache::archives=$base/debs" -o APT::Install-Recommends=false -o Debug::NoLocking=1
       -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3
       -o Acquire::Check-Valid-Until=false) # the archive may be a mirror frozen at some day; signatures are checked
  { "${apt[@]}" update && "${apt[@]}" -y -d install "${whole[@]}" libc6 &&
    { [ ${#alone[@]} = 0 ] || (cd "$base/debs" && "${apt[@]}" download "${alone[@]}"); }; } \
    >"$tools/apt.log" 2>&1 </dev/null || { tail -n 15 "$tools/apt.log" >&2; die "could not download ${whole[*]}"; }
  say "unpacking ${whole[*]}"
  for deb in "$base"/debs/*.deb; do dpkg -x "$deb" "$base/root"; done
  rm -rf "$root"
  mv "$base/root" "$root"
  rm -rf "$base"
}

unpack_mysql() {
  [ -x "$tools/mysql97/usr/sbin/mysqld" ] && return
  say "downloading MySQL 9.7 into .tools/mysql97 (100 MB)"
  unpack_apart mysql97 sid mysql-server-core mysql-client-core
}

unpack_mariadb118() {
  [ -e "$tools/mariadb118/usr/lib/mysql/plugin/auth_ed25519.so" ] && return
  say "downloading MariaDB 11.8 into .tools/mariadb118 (25 MB)"
  # Of the last two a part of the server and mariadb-dump are wanted, and none of what they depend on.
  unpack_apart mariadb118 trixie mariadb-server-core mariadb-client-core +mariadb-server +mariadb-client
}

# installed PACKAGE is true when Debian's package is there.
installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

packages_clients() {
  local package
  for package in php-cli php-mysql perl libdbd-mysql-perl libdbd-mariadb-perl python3 python3-pymysql python3-mysqldb \
    python3-sqlalchemy python3-django python3-redis ruby ruby-mysql2 ruby-activerecord libmariadb-dev libmariadb-java; do
    installed "$package" || need "$package"
  done
  packages_gcc
  has curl || need curl
  has java javac || need default-jdk-headless
  has node npm || need nodejs npm
}
unpack_clients() { install_node_packages integration/clients/node "$tools/clients/node"; }

packages_browser() {
  has chromium || need chromium
  has node npm || need nodejs npm
}
unpack_browser() { install_node_packages integration/observability/node "$tools/browser"; }

# install_node_packages FROM TO installs what FROM/package-lock.json has into TO.
install_node_packages() {
  local from=$1 to=$2
  cmp -s "$from/package-lock.json" "$to/package-lock.json" && return
  say "installing packages for Node.js into ${to#"$PWD"/}"
  rm -rf "$to.new"
  mkdir -p "$to.new"
  cp "$from/package.json" "$from/package-lock.json" "$to.new"
  # Nothing that a package brings is run.
  (cd "$to.new" && npm ci --ignore-scripts --no-audit --no-fund) >"$tools/npm.log" 2>&1 </dev/null ||
    { tail -n 15 "$tools/npm.log" >&2; die "could not install packages for Node.js"; }
  rm -rf "$to"
  mv "$to.new" "$to"
}

packages_client() { has mysql || has mariadb || need mariadb-client-core; }
packages_gcc() { has gcc || need gcc libc6-dev; }
packages_haproxy() { has haproxy || need haproxy; }
packages_icu() { installed libicu-dev && installed g++ || need libicu-dev g++; }
packages_sysbench() { has sysbench || need sysbench; }
packages_shells() { has fish zsh && installed bash-completion || need fish zsh bash-completion; }
packages_site() { has mkdocs && [ -d /usr/share/mkdocs/themes/material ] || need mkdocs mkdocs-material; }
packages_sandbox() { has strace ip systemd-analyze || need strace iproute2 systemd; }

# Compose and buildx are built once for each version of their module.
packages_docker() {
  local package
  has iptables || need iptables
  has ip || need iproute2
  for package in libdevmapper1.02.1 libseccomp2; do installed "$package" || need "$package"; done
}
unpack_docker() {
  local package to=$tools/docker built
  go mod download # the engine has no network, and its image of Go has all modules
  for package in docker.io containerd runc; do
    [ -e "$to/$package" ] || take_from "$package" usr "$to/$package"
  done
  built=$(cksum <integration/compose/tools/go.sum)
  [ "$(cat "$to/built" 2>/dev/null)" = "$built" ] && return
  say "building Docker Compose and buildx into .tools/docker, which takes some minutes"
  CGO_ENABLED=0 GOFLAGS='' go build -C integration/compose/tools -trimpath -ldflags='-s -w' -o "$to/cli-plugins/docker-compose" github.com/docker/compose/v2/cmd
  CGO_ENABLED=0 GOFLAGS='' go build -C integration/compose/tools -trimpath -ldflags='-s -w' -o "$to/cli-plugins/docker-buildx" github.com/docker/buildx/cmd/buildx
  echo "$built" >"$to/built"
}

packages_bare() { has debootstrap systemd-nspawn rpm || need debootstrap systemd-container rpm; }
unpack_bare() {
  local root=$tools/bare.new suite began=$SECONDS
  [ ! -e "$tools/bare.tar" ] || return 0
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  as_root rm -rf "$root"
  { as_root debootstrap --variant=minbase --include=systemd,systemd-sysv "$suite" "$root" "$(debian_archive)" &&
    say "debootstrap took $((SECONDS - began)) s" &&
    as_root systemd-nspawn -q --register=no --keep-unit -D "$root" --pipe env DEBIAN_FRONTEND=noninteractive \
      apt-get -q -y install --no-install-recommends mariadb-server &&
    as_root tar -C "$root" --exclude=./var/cache/apt -cf "$tools/bare.tar.new" .; } >"$tools/apt.log" 2>&1 </dev/null ||
    { tail -n 15 "$tools/apt.log" >&2; die "could not make a bare Debian"; }
  as_root rm -rf "$root"
  mv "$tools/bare.tar.new" "$tools/bare.tar"
  say "a bare Debian with MariaDB took $((SECONDS - began)) s"
}

# The program is in redis-tools under another name, by which it tells what to be; the package redis-server adds the service.
packages_redis() { has redis-server || has redis-check-rdb || need redis-tools; }
unpack_redis() {
  has redis-server && return
  mkdir -p "$tools/redis"
  ln -sf "$(command -v redis-check-rdb)" "$tools/redis/redis-server"
}

unpack_etcd() {
  has etcd || [ -x "$tools/etcd/etcd" ] || take_from etcd-server usr/bin "$tools/etcd"
  has etcdctl || [ -x "$tools/etcd-client/etcdctl" ] || take_from etcd-client usr/bin "$tools/etcd-client"
}

# A folder for each package: they all unpack into one of the system.
packages_zookeeper() { has java || need default-jre-headless; }
unpack_zookeeper() {
  local package
  for package in libzookeeper-java libslf4j-java libdropwizard-metrics-java libsnappy-java libnetty-java; do
    [ -e "$tools/zookeeper/$package" ] || take_from "$package" usr/share/java "$tools/zookeeper/$package"
  done
}

# Its rules are checked by promtool, which the package brings.
unpack_prometheus() {
  [ -x "$tools/prometheus/promtool" ] || take_from prometheus usr/bin "$tools/prometheus"
}

# each STEP WHAT ...
each() {
  local what step=$1
  shift
  for what; do
    if declare -F "${step}_$what" >/dev/null; then "${step}_$what"; fi
  done
}

[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
for what; do declare -F "packages_$what" >/dev/null || declare -F "unpack_$what" >/dev/null || die "unknown: $what"; done
# Where Go is there, a build waits for no installation.
if [ "$*" = go ] && reads_module go; then exit; fi
[ "$(uname -s)" = Linux ] ||
  die "this is $(uname -s): with a Go that go.mod allows, make build works; what has servers needs Debian, in a container or a virtual machine"

mkdir -p "$tools"
# One at a time: `make -j`, or two terminals, would unpack into the same folder.
exec 9>"$tools/install.lock"
flock 9
trap 'rm -rf "$tools"/unpack.*' EXIT
each packages "$@"
[ ${#missing[@]} = 0 ] || install_missing
each unpack "$@"
