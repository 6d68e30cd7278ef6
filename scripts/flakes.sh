#!/usr/bin/env bash
# Looks for tests that fail by chance. The usage below says how.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ ${1:-} == -* || ! ${1:-5} =~ ^[1-9][0-9]*$ ]]; then
  cat >&2 <<'USAGE'
usage: scripts/flakes.sh [RUNS [PACKAGE...]]

Runs `make test` RUNS times, 5 if nothing is said, beside three programs that take all the processor
time they get. With packages it runs the tests of these alone: scripts/flakes.sh 50 ./integration/ids
RUN=TestX in the environment runs one test.

Ctrl-C stops it. The next call with the same packages goes on where it was: runs that came to their
end count, as long as the commit is the same. What they came to is in .tools/flakes/sum, with all that
was run of this commit; runs in which something failed leave their output beside it. To begin anew,
remove .tools/flakes. It ends with status 1 when a test failed.
USAGE
  exit 2
fi
runs=${1:-5}
shift || true
what="make test${*:+ PKG=\"$*\"}${RUN:+ RUN=$RUN}"
at=.tools/flakes/$(git describe --always --dirty --exclude='*')
name=$(tr -cs 'A-Za-z0-9\n' '-' <<<"$what")
dir=$at/${name:0:100}-$(cksum <<<"$what" | cut -d' ' -f1) # a file's name has at most 255 bytes
mkdir -p "$dir"
echo "$what" >"$dir/what"

spinning=()
trap '{ kill "${spinning[@]}" && wait; } 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
for _ in 1 2 3; do
  # It ends with this script, however that ends.
  while kill -0 $$ 2>/dev/null; do for ((i = 0; i < 10000; i++)); do :; done; done &
  spinning+=($!)
done

# sum says what all runs of this commit came to.
sum() {
  local of line
  for of in "$at"/*/; do
    echo "$(<"$of/what"), beside three spinning programs, at ${at##*/}"
    for line in "$of"/run-*.sum; do
      [ ! -e "$line" ] || echo "  $(basename "$line" .sum): $(head -n 1 "$line")"
    done
    cat "$of"/run-*.sum 2>/dev/null | grep '^failed: ' | sort | uniq -c | sort -rn || true
  done
}

bad=0
for ((n = 1; n <= runs; n++)); do
  log=$dir/run-$n.log
  result=$dir/run-$n.sum
  if [ ! -e "$result" ]; then
    began=$SECONDS
    make test ${1:+PKG="$*"} >"$log" 2>&1 || true
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1 || true)
    [ -n "$counts" ] || { tail -n 20 "$log" >&2; echo "flakes: run $n came to no end, see $log" >&2; exit 1; }
    {
      echo "$counts, $((SECONDS - began)) seconds"
      # A package is named where no test of it failed: it did not build, or took too long.
      awk '/^failed: / && $3 !~ "/" { if ($3 == "") all[$2]; else { tests[$2]; print } }
        END { for (p in all) if (!(p in tests)) print "failed: " p }' "$log"
    } >"$result.part"
    mv "$result.part" "$result"
    sum >.tools/flakes/sum
    echo "flakes: run $n of $runs: $(head -n 1 "$result")"
  fi
  if grep -q '^failed: ' "$result"; then bad=$((bad + 1)); else rm -f "$log"; fi
done
cat .tools/flakes/sum
echo "flakes: $bad of $runs runs failed"
[ "$bad" -eq 0 ] || { echo "flakes: what they printed: $dir/run-*.log"; exit 1; }
