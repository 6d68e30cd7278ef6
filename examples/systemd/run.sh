#!/usr/bin/env bash
# Makes the Debian package, boots a bare Debian, and runs walk.sh in it.
set -euo pipefail
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
../../scripts/install-servers.sh bare
../../scripts/dist.sh package "$folder"
cp ../lib.sh walk.sh idproxy.yaml shards.conf schema.sql "$folder"
../../scripts/boot-bare.sh "$folder" ./walk.sh
