#!/usr/bin/env bash
# Boots a bare Debian that has systemd and MariaDB, in a network of its own, and runs a command in it as root.
#
#   scripts/boot-bare.sh FOLDER COMMAND ...
#
# There a copy of FOLDER is /walk, where the command is run. What it prints is printed, and its status is that of this script.
# Then the Debian halts, and nothing of it stays. `scripts/install-servers.sh bare` makes what it is unpacked from. It says so when
# the Debian has not booted within five minutes, or the command has not ended within fifteen.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
bare=$(dirname "$0")/../.tools/bare.tar
root=$(mktemp -d "${TMPDIR:-/tmp}/bare.XXXXXX")

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo -n)

die() { printf 'boot-bare: %s\n' "$*" >&2; exit 1; }

# ends SECONDS waits for the end of what is booted.
ends() { timeout "$1" tail -f /dev/null --pid="$booted" -s 0.1; }

halt() {
  trap '' INT TERM
  # systemd-nspawn has what it boots halt in order.
  if [ -n "${booted-}" ]; then "${as_root[@]}" kill -TERM "$booted" 2>/dev/null && ends 60 || "${as_root[@]}" kill -KILL "$booted" 2>/dev/null || true; fi
  "${as_root[@]}" rm -rf "$root" "$root.console"
}
trap halt EXIT
trap 'exit 130' INT TERM

"${as_root[@]}" tar -C "$root" -xf "$bare"
"${as_root[@]}" cp -r "$1" "$root/walk"
shift
"${as_root[@]}" tee "$root/etc/hosts" >/dev/null <<<"127.0.0.1 localhost"
"${as_root[@]}" tee "$root/etc/systemd/system/walk.service" >/dev/null <<END_OF_UNIT
[Unit]
After=multi-user.target mariadb.service
[Service]
Type=oneshot
WorkingDirectory=/walk
ExecStart=/bin/bash -c 'touch /walk/.begun; timeout 900 $* >/walk/.log 2>&1; echo \$? >/walk/.status; systemctl --no-block poweroff'
[Install]
WantedBy=default.target
END_OF_UNIT
"${as_root[@]}" touch "$root/walk/.log"
"${as_root[@]}" systemctl --quiet --root="$root" enable walk.service
"${as_root[@]}" systemctl --quiet --root="$root" disable mariadb.socket # the server listens on 127.0.0.1, and not on all addresses

# Debian has control groups of version 2. With version 1 systemd in a container does not wait for a process that it has not
# started itself, such as one that took over in an upgrade.
"${as_root[@]}" env SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 systemd-nspawn -q --register=no --keep-unit --private-network --boot -D "$root" \
  >"$root.console" 2>&1 </dev/null &
booted=$!
tail -n +1 -s 0.1 -f --pid="$booted" "$root/walk/.log" &
for try in $(seq 3000); do
  [ ! -e "$root/walk/.begun" ] && [ -e "/proc/$booted" ] || break
  [ "$try" != 3000 ] || { tail -n 30 "$root.console" >&2; die "the Debian has not booted within five minutes: the lines above are its console"; }
  sleep 0.1
done
ends 1200 || die "the Debian has not halted"
wait "$booted" || { cat "$root.console" >&2; die "the Debian cannot be booted: the lines above are its console"; }
booted=
wait
status=$(cat "$root/walk/.status") || die "the Debian has halted before the command ended"
[ "$status" != 124 ] || die "the command has not ended within fifteen minutes"
exit "$status"
