#!/usr/bin/env bash
# Packs what an engine-only build needs of others into one folder: tools/gpu_bundle.sh [FOLDER] (called by `./dev gpu-bundle`).
#
# FOLDER (default .gpu-bundle, which git ignores) gets include/ and lib/: the headers of the Debian packages below, their
# shared libraries (Debian's static ones fit no module of ours: they are not position-independent), static ones that
# only tests link, and the small checkpoints with expected values that `./dev gpu` checks, where IHA_EVAL_CASES names them. cmake/IhaBundle.cmake builds from it on hosts that have none of
# these packages and no network. It must stay below 50 MB: such hosts take little at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-.gpu-bundle}
limit=50000000
say() { printf 'gpu-bundle: %s\n' "$*" >&2; }

headers=(libabsl-dev libfmt-dev nlohmann-json3-dev libssl-dev libpcre2-dev libutf8proc-dev libhwy-dev libcli11-dev
  libflint-dev libflint-arb-dev libgmp-dev libmpfr-dev libgtest-dev libgmock-dev zlib1g-dev)
static=(gtest gtest_main gmock)
# The last four: what the others load.
shared=(crypto.so fmt.so hwy.so pcre2-8.so utf8proc.so z.so flint.so flint-arb.so gmp.so mpfr.so ntl.so.44 gf2x.so.3)

multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
libraries=/usr/lib/$multiarch
new=$folder.new
rm -rf "$new"
mkdir -p "$new/include" "$new/lib"
# Headers of the architecture's own folder go beside the others: both are searched anyway.
for package in "${headers[@]}"; do
  dpkg -L "$package" >/dev/null 2>&1 || { say "the Debian package $package is missing; ./dev deps build installs it"; exit 4; }
  dpkg -L "$package" | while read -r file; do
    case $file in /usr/include/*) ;; *) continue ;; esac
    [ -f "$file" ] || continue
    relative=${file#/usr/include/}
    install -D -m 644 "$file" "$new/include/${relative#"$multiarch"/}"
  done
done
for file in "$libraries"/libabsl_*.so; do
  name=${file##*/lib}
  shared+=("$name")
done
for name in "${static[@]}"; do cp "$libraries/lib$name.a" "$new/lib/"; done
for name in "${shared[@]}"; do
  # Under the name that is looked for when a program starts, and that of the link.
  file=$(readlink -f "$libraries/lib$name")
  soname=$(objdump -p "$file" | sed -n 's/^ *SONAME *//p')
  cp "$file" "$new/lib/$soname"
  link=lib${name%%.so*}.so
  [ "$soname" = "$link" ] || ln -s "$soname" "$new/lib/$link"
done
strip --strip-debug "$new"/lib/*.a
if [ -d "${IHA_EVAL_CASES:-/nonexistent}" ]; then
  for part in hf_families attention_oracles; do
    [ ! -d "$IHA_EVAL_CASES/$part" ] || { mkdir -p "$new/cases" && cp -r "$IHA_EVAL_CASES/$part" "$new/cases/"; }
  done
fi
size=$(du -sb "$new" | cut -f1)
[ "$size" -le $limit ] || { say "$new has $size bytes, the limit is $limit; leave something out"; exit 1; }
rm -rf "$folder"
mv "$new" "$folder"
say "$folder: $((size / 1000000)) MB; carry it beside the checkout, there ./dev gpu builds from it"
