#!/usr/bin/env bash
# Runs every fuzz target of the module for a while, two at a time: scripts/fuzz.sh [TIME], TIME as in 8s or 10m.
# Without the race detector, which would make it find ten times less.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-8s}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fuzz PROGRAM FOLDER TARGET leaves a file with what failed. Go before 1.27 may end a run that found nothing with nothing
# but "context deadline exceeded" (go.dev/issue/75804); such a run, and no other, is run again.
fuzz() {
  local log=$1.$3.log try ran
  for try in 1 2 3; do
    # The minimising of interesting inputs is not bounded by the time otherwise. Inputs of earlier runs may take all the time.
    if (cd "$2" && "$1" -test.run '^$' -test.fuzz "^$3\$" -test.fuzztime "$time" -test.fuzzminimizetime 2s -test.parallel 1 \
      -test.fuzzcachedir "$cache/${2#"$PWD"/}") </dev/null >"$log" 2>&1 && ran=$(grep -oE '(execs|baseline coverage): [1-9][0-9]*' "$log"); then
      echo "fuzz: ${2#"$PWD"/} $3 for $time: ${ran##*$'\n'}"
      return
    fi
    grep -qx ' *context deadline exceeded' "$log" && ! grep -q 'Failing input\|panic' "$log" || break
  done
  cat "$log"
  echo "${2#"$PWD"/} $3" >"$log.failed"
}

cache=$(go env GOCACHE)/fuzz/idproxy
count=0
for folder in $(grep -rl --include='*_test.go' --exclude-dir='.?*' '^func Fuzz' . | xargs -n1 dirname | sort -u); do
  folder=$PWD/${folder#./}
  program=$work/${folder//\//-}.test
  go test -c -vet=off -ldflags=-w -fuzz . -o "$program" "$folder"
  for target in $(cd "$folder" && "$program" -test.list '^Fuzz'); do
    [ "$(jobs -rp | wc -l)" -lt 2 ] || wait -n
    fuzz "$program" "$folder" "$target" &
    count=$((count + 1))
  done
done
wait
failed=$(cat "$work"/*.failed 2>/dev/null || true)
echo "fuzz: $count targets ran for $time each, $(grep -c . <<<"$failed" || true) failed"
[ -z "$failed" ] || { echo "fuzz: failed: $failed"; exit 1; }
