#!/usr/bin/env bash
# `make run`: installs what the demo needs, builds the programs, then becomes the demo.
set -euo pipefail
cd "$(dirname "$0")/.."

server=mariadb
[ -z "${UPSTREAM:-}" ] || server=client
scripts/install-servers.sh go "$server" redis
echo "demo: building idproxy; the first time this takes a minute or two"
mkdir -p bin
CGO_ENABLED=0 go build -trimpath -o bin/idproxy ./cmd/idproxy
CGO_ENABLED=0 go build -o bin/demo ./integration/demo
exec bin/demo bin/idproxy
