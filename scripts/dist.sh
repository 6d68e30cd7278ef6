#!/usr/bin/env bash
# Makes what is handed out, in dist/: a static program for each platform, what is in it (CycloneDX), and checksums of all.
#
#   scripts/dist.sh
#
# First govulncheck looks for known vulnerabilities that the program reaches. It asks https://vuln.go.dev. Elsewhere set
# GOVULNDB=file:///path to a copy of https://storage.googleapis.com/go-vulndb/vulndb.zip, unpacked, or GOVULNDB=none to go on
# without. VERSION is that of the files' names; default: git's.
set -euo pipefail
cd "$(dirname "$0")/.."

govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.9.0
cyclonedx=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0
version=${VERSION:-$(git describe --tags --match 'v[0-9]*' --always --dirty)}
dist=$PWD/dist

say() { printf 'dist: %s\n' "$*" >&2; }

look_for_vulnerabilities() {
  local log
  if [ "${GOVULNDB-}" = none ]; then
    say "known vulnerabilities were not looked for: GOVULNDB is none"
    return
  fi
  log=$(mktemp)
  if go run "$govulncheck" ${GOVULNDB:+-db "$GOVULNDB"} ./... 2>&1 | tee "$log" >&2; then
    rm "$log"
    return
  fi
  if grep -q 'fetching vulnerabilities' "$log"; then
    say "the database of vulnerabilities cannot be reached: set GOVULNDB=file:///path to a copy, or GOVULNDB=none to go on without"
  else
    say "govulncheck found something, or could not look: see above"
  fi
  rm "$log"
  exit 1
}

# build OS ARCH
build() {
  local program=$dist/idproxy-$version-$1-$2
  say "building $1/$2"
  CGO_ENABLED=0 GOOS=$1 GOARCH=$2 go build -trimpath -ldflags='-s -w' -o "$program" ./cmd/idproxy
  go run "$cyclonedx" bin -json -std -noserial -version "$version" -output "$program.cdx.json" "$program"
}

look_for_vulnerabilities
rm -rf "$dist"
mkdir -p "$dist"
for os in linux darwin; do
  for arch in amd64 arm64; do build "$os" "$arch"; done
done
(cd "$dist" && sha256sum -- * >SHA256SUMS && sha256sum --quiet -c SHA256SUMS)
say "made $(ls "$dist" | wc -l) files in dist/"
