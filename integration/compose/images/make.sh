#!/usr/bin/env bash
# Puts images into the engine of $DOCKER_HOST that do what those do which the Dockerfile and docker-compose.yml name, under the same
# names. They are made of programs of this machine, as no registry of images can be asked.
#
#   make.sh WORK    WORK keeps Go's modules and what it has compiled, for the next time
#
# `scripts/install-servers.sh mysql redis docker` brings what they are made of.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
work=$1
PATH=$top/.tools/docker/docker.io/bin:$top/.tools/go/bin:$PATH:/usr/sbin:/sbin:$top/.tools/redis
mkdir -p "$work"
trees=$(mktemp -d -p "$work")
trap 'rm -rf "$trees"' EXIT

path=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# tree NAME begins the files of an image.
tree() {
  mkdir -p "$trees/$1"/{etc/ssl/certs,proc,root,run,sys,dev,tmp,usr/bin,usr/sbin,usr/lib,usr/lib64,usr/local/bin,var/lib}
  chmod 1777 "$trees/$1/tmp"
  for link in bin sbin lib lib64; do ln -s "usr/$link" "$trees/$1/$link"; done
  cp /etc/ssl/certs/ca-certificates.crt "$trees/$1/etc/ssl/certs"
  ln -s ../run "$trees/$1/var/run"
}

# put NAME PROGRAM ... adds programs of this machine and the libraries that they need. Those that are there are newer.
put() {
  local root=$trees/$1 program from library
  shift
  for program; do
    from=$(readlink -f "$(command -v "$program")")
    cp "$from" "$root/usr/bin/$program"
    for library in $(ldd "$from" | grep -oE '/[^ ]+' || true); do # a static one has none
      mkdir -p "$root${library%/*}"
      [ -e "$root$library" ] || cp -L "$library" "$root$library"
    done
  done
}

# image NAME REFERENCE CHANGE ... hands the files to the engine.
image() {
  local change changes=(--change "ENV PATH=$path")
  for change in "${@:3}"; do changes+=(--change "$change"); done
  tar -C "$trees/$1" -c . | docker import "${changes[@]}" - "$2" >/dev/null
  echo "$2"
  rm -rf "${trees:?}/$1"
}

tree static
mkdir "$trees/static/usr/share"
cp -r /usr/share/zoneinfo "$trees/static/usr/share"
printf 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n' >"$trees/static/etc/passwd"
printf 'root:x:0:\nnonroot:x:65532:\n' >"$trees/static/etc/group"
image static gcr.io/distroless/static-debian12:nonroot 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt' 'USER 65532'

tree redis
put redis redis-server redis-cli dash
ln -s dash "$trees/redis/usr/bin/sh"
mkdir "$trees/redis/data"
echo 'root:x:0:0::/root:/bin/sh' >"$trees/redis/etc/passwd"
printf '#!/bin/sh\numask 0077\n[ "$1" != redis-server ] || set -- "$@" --protected-mode no\nexec "$@"\n' >"$trees/redis/usr/bin/docker-entrypoint.sh"
chmod 755 "$trees/redis/usr/bin/docker-entrypoint.sh"
image redis docker.io/library/redis:7 'WORKDIR /data' 'VOLUME /data' 'EXPOSE 6379' 'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["redis-server"]'

tree mysql
tar -C "$top/.tools/mysql97" -c --exclude='*/perl*' --exclude=./usr/share/{doc,man,locale} --exclude='*/gconv' ./usr | tar -C "$trees/mysql" -x
put mysql bash cat chown date setpriv
ln -s bash "$trees/mysql/usr/bin/sh"
mkdir -p "$trees/mysql"/{docker-entrypoint-initdb.d,var/lib/mysql,var/lib/mysql-files,run/mysqld}
cp "$here/mysql/my.cnf" "$trees/mysql/etc"
cp "$here/mysql/docker-entrypoint.sh" "$trees/mysql/usr/bin"
printf 'root:x:0:0:root:/root:/bin/bash\nmysql:x:999:999::/var/lib/mysql:/bin/bash\n' >"$trees/mysql/etc/passwd"
printf 'root:x:0:\nmysql:x:999:\n' >"$trees/mysql/etc/group"
chown 999:999 "$trees/mysql"/{var/lib/mysql,var/lib/mysql-files,run/mysqld}
image mysql docker.io/library/mysql:9.7 'VOLUME /var/lib/mysql' 'EXPOSE 3306 33060' 'ENTRYPOINT ["docker-entrypoint.sh"]' 'CMD ["mysqld"]'

# Go, with the modules of go.sum and what was compiled before: no network is needed, and a build takes seconds.
export GOFLAGS=-modcacherw
(
  cd "$top"
  from=$(go env GOMODCACHE)
  export GOMODCACHE=$work/modules GOPROXY=file://$from/cache/download
  go mod download
  GOCACHE=$work/compiled CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /dev/null ./cmd/idproxy
)
tree golang
put golang dash mkdir
ln -s dash "$trees/golang/usr/bin/sh"
mkdir "$trees/golang/root/.cache"
cp -a "$work/modules/cache/download" "$trees/golang/goproxy"
cp -a "$work/compiled" "$trees/golang/root/.cache/go-build"
cp -a "$(cd "$top" && go env GOROOT)" "$trees/golang/usr/local/go"
rm -rf "$trees/golang/usr/local/go/"{test,api,doc}
echo 'root:x:0:0::/root:/bin/sh' >"$trees/golang/etc/passwd"
image golang docker.io/library/golang:1.26-bookworm 'ENV GOTOOLCHAIN=local' 'ENV GOPROXY=file:///goproxy' 'ENV GOSUMDB=off'
