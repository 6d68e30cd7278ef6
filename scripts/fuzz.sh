#!/usr/bin/env bash
# Runs every fuzz target of the module for a while, one after another: scripts/fuzz.sh [TIME], TIME as in 8s or 10m.
# Without the race detector, which would make it find ten times less.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-8s}

# fuzz PACKAGE TARGET. Go before 1.27 may end a run that found nothing with nothing but "context deadline exceeded"
# (go.dev/issue/75804); such a run, and no other, is run again.
fuzz() {
  local log try
  log=$(mktemp)
  for try in 1 2 3; do
    # The minimising of interesting inputs is not bounded by -fuzztime otherwise.
    if go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 2s "$1" </dev/null 2>&1 | tee "$log"; then
      rm -f "$log"
      return 0
    fi
    grep -qx ' *context deadline exceeded' "$log" && ! grep -q 'Failing input\|panic' "$log" || break
  done
  rm -f "$log"
  return 1
}

# `go test -list` prints a package's targets, then "ok  PACKAGE  0.01s".
targets=$(go test -list '^Fuzz' ./... | awk '/^Fuzz/ { names[n++] = $1 } /^ok/ { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }')
count=0 failed=()
while read -r package target; do
  [ -n "$target" ] || continue
  echo "fuzz: $package $target for $time"
  fuzz "$package" "$target" || failed+=("$package $target")
  count=$((count + 1))
done <<<"$targets"
echo "fuzz: $count targets ran for $time each, ${#failed[@]} failed"
[ ${#failed[@]} -eq 0 ] || { printf 'fuzz: failed: %s\n' "${failed[@]}"; exit 1; }
