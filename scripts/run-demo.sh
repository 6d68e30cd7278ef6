#!/usr/bin/env bash
# `make run`: installs what the demo needs while the programs are built, then becomes the demo. When one of the two fails,
# or at Ctrl-C, the other is stopped.
set -euo pipefail
cd "$(dirname "$0")/.."

build() {
  mkdir -p bin
  CGO_ENABLED=0 go build -trimpath -o bin/idproxy ./cmd/idproxy
  CGO_ENABLED=0 go build -o bin/demo ./integration/demo
}

need=mariadb
[ -z "${UPSTREAM:-}" ] || need=client
scripts/install-servers.sh "$need" redis &
echo "demo: building idproxy; the first time this takes a minute or two"
build &
trap 'jobs -p | xargs -r kill 2>/dev/null; wait' EXIT
wait -n # whichever ends first
wait -n
trap - EXIT
exec bin/demo bin/idproxy
