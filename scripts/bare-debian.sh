#!/usr/bin/env bash
# Runs a command in a clone of this repository, in a Debian that has make, git and ca-certificates and nothing else, and
# prints each line with the seconds until then. Nothing of it stays.
#
#   scripts/bare-debian.sh make test
#
# Needs root and debootstrap. What is not committed is not in the clone.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(mktemp -d "${TMPDIR:-/tmp}/bare.XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
chmod 755 "$root" # as / is
trap '' INT # the command has it

stamped() { while IFS= read -r line; do printf '%5d s  %s\n' "$SECONDS" "$line"; done; }

{
  debootstrap --variant=minbase --include=make,git,ca-certificates bookworm "$root" | tail -n 1
  printf 'deb http://deb.debian.org/debian%s main\n' ' bookworm' ' bookworm-updates' '-security bookworm-security' >"$root/etc/apt/sources.list"
  # What a network needs here, it needs there.
  cp /etc/resolv.conf /etc/hosts "$root/etc"
  cp -r /usr/local/share/ca-certificates "$root/usr/local/share"
  env -u TMPDIR chroot "$root" update-ca-certificates >/dev/null
  git clone -q . "$root/srv/idproxy"
  echo "a bare Debian, and the clone in it: $*"
  # In namespaces of its own, so that no mount and no process stays.
  # shellcheck disable=SC2016 # for the shells in there
  unshare --mount --pid --fork --kill-child bash -ec '
    mount -t proc proc "$0/proc"
    for folder in dev sys; do mount --rbind "/$folder" "$0/$folder"; done
    trap - INT
    exec chroot "$0" env -i HOME=/srv TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -c "cd /srv/idproxy && exec \"\$@\"" bash "$@"' "$root" "$@"
} 2>&1 | stamped
