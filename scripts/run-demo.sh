#!/usr/bin/env bash
# `make run`: installs what the demo needs while the programs are built, then becomes the demo.
set -euo pipefail
cd "$(dirname "$0")/.."

need=mariadb
[ -z "${UPSTREAM:-}" ] || need=client
scripts/install-servers.sh "$need" redis &
install=$!
trap 'wait "$install"' EXIT # a build that fails does not leave it behind
echo "demo: building idproxy"
mkdir -p bin
CGO_ENABLED=0 go build -trimpath -o bin/idproxy ./cmd/idproxy
CGO_ENABLED=0 go build -o bin/demo ./integration/demo
wait "$install"
trap - EXIT
exec bin/demo bin/idproxy
