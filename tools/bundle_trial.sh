#!/usr/bin/env bash
# Builds preset engine-only from a bundle alone: tools/bundle_trial.sh FOLDER [COMMAND...]
#
# FOLDER (new) becomes a clone of HEAD with the bundle of `./dev gpu-bundle` beside it. Each COMMAND (default: configure,
# build every target, `./dev gpu`) runs there without a network and in a view of /usr that lacks every Debian package
# named *-dev but the compiler's own, and Protobuf's compilers: no Abseil, gRPC, Protobuf or SQLite can be found. Wall
# time and last line are printed as the cells of a row of docs/verification.md. Needs root (mounts of its own, which end
# with it). FOLDER stays; remove it by hand when done.
set -euo pipefail
say() { printf 'bundle_trial: %s\n' "$*" >&2; }
[ "$(id -u)" = 0 ] || { say "needs root (mounts)"; exit 2; }
[ $# -ge 1 ] || { say "usage: $0 FOLDER [COMMAND...]"; exit 2; }
source_tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=$(realpath -m "$1")
shift
[ $# -gt 0 ] || set -- "cmake --preset engine-only" "ninja -C build/engine-only" "./dev gpu"
[ -d "$source_tree/.gpu-bundle/lib" ] || { say "no bundle: run ./dev gpu-bundle first"; exit 2; }
if [ ! -e "$folder" ]; then
  git clone -q --no-hardlinks "$source_tree" "$folder"
  cp -r "$source_tree/.gpu-bundle" "$folder/"
fi

# Mounts and network of its own: the script runs itself anew in them.
if [ -z "${IHA_BUNDLE_TRIAL:-}" ]; then
  export IHA_BUNDLE_TRIAL=1
  exec unshare --mount --net "${BASH_SOURCE[0]}" "$folder" "$@"
fi
view=$(mktemp -d)
mount -t tmpfs tmpfs "$view"
mkdir "$view/upper" "$view/work"
mapfile -t hidden < <(dpkg-query -W -f='${Package}\n' | grep -E -- '-dev$|^protobuf-compiler' |
  grep -vE '^(libc6|libcrypt|libgcc-[0-9]+|libstdc\+\+-[0-9]+|linux-libc)-dev$')
files=$(dpkg -L "${hidden[@]}" 2>/dev/null | sort -u)
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$view/upper,workdir=$view/work" /usr
while read -r file; do
  if [ -f "$file" ] || [ -L "$file" ]; then rm -f "$file"; fi
done <<<"$files"
for gone in absl/status/status.h grpcpp/grpcpp.h google/protobuf/message.h sqlite3.h; do
  [ ! -e "/usr/include/$gone" ] || { say "/usr/include/$gone is still there"; exit 1; }
done

cd "$folder"
commit=$(git rev-parse --short HEAD)
unset IHA_EVAL_DATA IHA_EVAL_CASES IHA_EVAL_GRADERS IHA_EVAL_TEST_MODEL
for command in "$@"; do
  start=$SECONDS status=0 log=$folder/build/trial.log
  mkdir -p build
  say "$command"
  bash -c "$command" </dev/null >"$log" 2>&1 || status=$?
  printf '| %s | `%s` | clone beside a bundle of %s bytes, no *-dev package, no network, exit %s | %d s | %s |\n' "$commit" "$command" \
    "$(du -sb .gpu-bundle | cut -f1)" "$status" $((SECONDS - start)) "$(grep -v '^[[:space:]]*$' "$log" | tail -n 1)"
  [ "$status" = 0 ] || { tail -n 30 "$log" >&2; say "'$command' failed with exit $status; log: $log"; exit "$status"; }
done
