#!/usr/bin/env bash
# Tries the commands of the README in a bare Debian 12: tools/bare_root_trial.sh ROOT [--shared DIR] [COMMAND...]
#
# ROOT (a new folder with 10 GiB free) becomes a minimal Debian 12 made by debootstrap, holding a clone of HEAD at
# /home/checkout/iha-eval and, with --shared, a copy of DIR beside it. Each COMMAND (default: "./dev quickstart" and
# "./dev test") runs there in a chroot with an empty environment; its wall time and last line are printed as the cells
# of a row of docs/verification.md. Of this machine it sees the network settings only: resolv.conf, apt's sources and
# proxy settings, pip's settings, extra certificates. Needs root. ROOT stays; remove it by hand when done (nothing is
# mounted in it after the run).
set -euo pipefail
say() { printf 'bare_root_trial: %s\n' "$*" >&2; }
[ "$(id -u)" = 0 ] || { say "needs root (debootstrap and chroot)"; exit 2; }
[ $# -ge 1 ] || { say "usage: $0 ROOT [--shared DIR] [COMMAND...]"; exit 2; }
command -v debootstrap >/dev/null || { say "debootstrap is not installed: apt-get install debootstrap"; exit 2; }
source_tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
root=$(realpath -m "$1")
shift
shared=
if [ "${1:-}" = --shared ]; then
  shared=$(realpath "$2")
  shift 2
fi
[ $# -gt 0 ] || set -- "./dev quickstart" "./dev test"

mounts=()
unmount_all() {
  local i
  for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do umount "${mounts[i]}" || umount -l "${mounts[i]}"; done
}
trap unmount_all EXIT
mount_in() { # TYPE SOURCE PLACE
  mkdir -p "$root$3"
  if [ "$1" = bind ]; then mount --bind "$2" "$root$3"; else mount -t "$1" "$2" "$root$3"; fi
  mounts+=("$root$3")
}

if [ ! -e "$root/etc/debian_version" ]; then
  [ ! -e "$root" ] || [ -z "$(ls -A "$root")" ] || { say "$root holds other files; name a new folder"; exit 2; }
  say "debootstrap bookworm into $root"
  mkdir -p "$root"
  # certificates: an https mirror or index needs them before anything is installed.
  debootstrap --variant=minbase --include=ca-certificates bookworm "$root" >"$root.log" 2>&1 ||
    { tail -n 5 "$root.log" >&2; say "debootstrap failed; log: $root.log"; exit 4; }
fi
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/etc/pip.conf"
for file in /etc/apt/apt.conf.d/*proxy* /etc/apt/sources.list.d/debian.sources; do
  [ ! -e "$file" ] || cp "$file" "$root$file"
done
[ ! -e "$root/etc/apt/sources.list.d/debian.sources" ] || rm -f "$root/etc/apt/sources.list"
if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
  cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
  chroot "$root" update-ca-certificates >/dev/null 2>&1
fi

place=/home/checkout/iha-eval
rm -rf "$root$place"
git clone -q --no-hardlinks "$source_tree" "$root$place"
if [ -n "$shared" ]; then
  rm -rf "$root/home/checkout/shared"
  cp -r "$shared" "$root/home/checkout/shared"
fi
mount_in proc proc /proc
mount_in bind /dev /dev
mount_in bind /sys /sys
mount_in tmpfs tmpfs /dev/shm

# Proxy and index settings of this machine, nothing else of its environment.
mapfile -t network < <(env | grep -E '^(https?_proxy|no_proxy|HTTPS?_PROXY|NO_PROXY|PIP_(INDEX_URL|CERT|PROXY|DEFAULT_TIMEOUT))=' || true)
commit=$(git -C "$source_tree" rev-parse --short HEAD)
for command in "$@"; do
  start=$SECONDS
  log=$root/home/checkout/$(tr -c 'a-z0-9\n' '_' <<<"$command").log
  say "$command"
  status=0
  chroot "$root" env -i HOME=/home/checkout PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "${network[@]}" \
    bash -c "cd $place && $command" </dev/null >"$log" 2>&1 || status=$?
  printf '| %s | `%s` | bare Debian 12 (debootstrap), %s cores, exit %s | %d s | %s |\n' "$commit" "$command" "$(nproc)" "$status" \
    $((SECONDS - start)) "$(grep -v '^[[:space:]]*$' "$log" | tail -n 1)"
  [ "$status" = 0 ] || { tail -n 30 "$log" >&2; say "'$command' failed with exit $status; log: $log"; exit "$status"; }
done
