#!/usr/bin/env bash
# Makes what is handed out, in dist/: a static program for each platform, what is in it (CycloneDX), packages for Debian and
# for distributions with RPM, and checksums of all. The same commit gives the same bytes.
#
#   scripts/dist.sh              everything
#   scripts/dist.sh package DIR  the Debian and the RPM package for this machine's processor alone, in DIR
#
# First govulncheck looks for known vulnerabilities that the program reaches. It asks https://vuln.go.dev. Elsewhere set
# GOVULNDB=file:///path to a copy of https://storage.googleapis.com/go-vulndb/vulndb.zip, unpacked, or GOVULNDB=none to go on
# without. What cannot be had without a network is left out, and the last line names it. The version is that of git's tag, v1.2.3; Go writes it into the program, which says it with --version.
set -euo pipefail
cd "$(dirname "$0")/.."

govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.9.0
cyclonedx=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() { printf 'dist: %s\n' "$*" >&2; }

skipped=()
skip() { say "skipped: $*"; skipped+=("$*"); }

# tool PACKAGE builds a program of others in $scratch/bin, and is false where it cannot be had.
tool() { GOBIN=$scratch/bin go install "$1" >"$scratch/tool" 2>&1 || { tail -n 2 "$scratch/tool" >&2; false; }; }

look_for_vulnerabilities() {
  local log=$scratch/govulncheck
  if [ "${GOVULNDB-}" = none ]; then
    skip "known vulnerabilities, for GOVULNDB is none"
  elif ! tool "$govulncheck"; then
    skip "known vulnerabilities, for govulncheck cannot be had"
  elif "$scratch/bin/govulncheck" ${GOVULNDB:+-db "$GOVULNDB"} ./... 2>&1 | tee "$log" >&2; then
    say "no known vulnerability"
  elif grep -q 'fetching vulnerabilities' "$log"; then
    skip "known vulnerabilities, for their database cannot be reached; GOVULNDB=file:///path is a copy"
  else
    say "govulncheck found something, or could not look: see above"
    exit 1
  fi
}

# compile OS ARCH PROGRAM
compile() {
  say "building $1/$2"
  CGO_ENABLED=0 GOOS=$1 GOARCH=$2 go build -trimpath -buildvcs=true -ldflags='-s -w' -o "$3" ./cmd/idproxy
}

# prepare makes what packages hold beside the program, in $scratch/stage, and sets version. All files have the time of the
# commit.
prepare() {
  local stage=$scratch/stage page
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH
  mkdir -p "$stage"/{man,completion,doc}
  compile "$(go env GOHOSTOS)" "$(go env GOHOSTARCH)" "$scratch/idproxy"
  version=$("$scratch/idproxy" version | awk '{ print $2 }')
  [[ $version == v[0-9]* ]] || { say "Go has found no version: make it in a clone, not in a worktree of git"; exit 1; }
  "$scratch/idproxy" man "$stage/man"
  gzip -9n "$stage"/man/*
  for shell in bash zsh fish; do "$scratch/idproxy" completion "$shell" >"$stage/completion/$shell"; done
  for page in idproxy.service idproxy.socket; do
    sed 's,/usr/local/bin/,/usr/bin/,' "deploy/systemd/$page" >"$stage/$page"
  done
  # Further processes on the same machine, each with folders of its own. docs/operations.md has this line, too.
  sed -E 's,(/etc/|/var/lib/|Directory=)idproxy,&-%i,' "$stage/idproxy.service" >"$stage/idproxy@.service"
  cp -r deploy/package/. "$stage"
  cp README.md CHANGELOG.md config/example.yaml "$stage/doc"
  cp config/schema.json "$stage"
}

# package FORMAT ARCH PROGRAM DIR
package() {
  say "packaging $1 for $2"
  cp "$3" "$scratch/stage/idproxy"
  find "$scratch/stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  # 1.2.3, 1.2.3~rc1, and of a commit without a tag 0.0.0~20260102030405.0123456789ab: lower than any version.
  PACKAGE_VERSION=$(sed 's/^v//; s/-/~/; s/-/./g' <<<"$version") ARCH=$2 \
    MAINTAINER="$(git log -1 --format='%an <%ae>')" \
    env -C "$scratch/stage" "$scratch/bin/nfpm" package --packager "$1" --target "$4" >&2
}

everything() {
  local dist=$PWD/dist os arch program lists=yes packages=yes
  look_for_vulnerabilities
  tool "$cyclonedx" || { skip "what is in each program, for cyclonedx-gomod cannot be had"; lists=; }
  tool "$nfpm" || { skip "packages, for nfpm cannot be had"; packages=; }
  prepare
  rm -rf "$dist"
  mkdir -p "$dist"
  for os in linux darwin; do
    for arch in amd64 arm64; do
      program=$dist/idproxy-$version-$os-$arch
      compile "$os" "$arch" "$program"
      if [ -n "$lists" ]; then
        "$scratch/bin/cyclonedx-gomod" bin -json -std -noserial -version "$version" -output "$program.cdx.json" "$program"
        sed -i "s/\"timestamp\": \"[^\"]*\"/\"timestamp\": \"$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)\"/" "$program.cdx.json"
      fi
      [ "$os" = linux ] && [ -n "$packages" ] || continue
      package deb "$arch" "$program" "$dist"
      package rpm "$arch" "$program" "$dist"
    done
  done
  (cd "$dist" && sha256sum -- * >SHA256SUMS && sha256sum --quiet -c SHA256SUMS)
  say "made $(find "$dist" -type f | wc -l) files in dist/${skipped[*]:+, without:$(printf ' %s;' "${skipped[@]}")}"
}

case $# in
0) everything ;;
2)
  [ "$1" = package ] || { sed -n '5,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
  tool "$nfpm" || { say "nfpm cannot be had"; exit 1; }
  prepare
  arch=$(go env GOHOSTARCH)
  compile linux "$arch" "$scratch/program"
  package deb "$arch" "$scratch/program" "$2"
  package rpm "$arch" "$scratch/program" "$2"
  ;;
*) sed -n '5,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
