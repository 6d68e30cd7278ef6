#!/usr/bin/env bash
# Runs every fuzz target of the module for a while, one after another: scripts/fuzz.sh [TIME], TIME as in 8s or 10m.
# Without the race detector, which would make it find ten times less.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-8s}

# `go test -list` prints a package's targets, then "ok  PACKAGE  0.01s".
targets=$(go test -list '^Fuzz' ./... | awk '/^Fuzz/ { names[n++] = $1 } /^ok/ { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }')
count=0 failed=()
while read -r package target; do
  [ -n "$target" ] || continue
  echo "fuzz: $package $target for $time"
  # The minimising of interesting inputs is not bounded by -fuzztime otherwise.
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 2s "$package" </dev/null ||
    failed+=("$package $target")
  count=$((count + 1))
done <<<"$targets"
echo "fuzz: $count targets ran for $time each, ${#failed[@]} failed"
[ ${#failed[@]} -eq 0 ] || { printf 'fuzz: failed: %s\n' "${failed[@]}"; exit 1; }
