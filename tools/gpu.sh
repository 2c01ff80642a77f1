#!/usr/bin/env bash
# Everything that needs a GPU, within ten minutes (called by `./dev gpu`).
#
# A line for each step (tools/gpu_steps.sh); its output is in build/gpu/log/. After one that fails the others still run.
# Speeds are printed in full.
set -uo pipefail
cd "$(dirname "$0")/.."
log=build/gpu/log
whole=580 failed=0
mkdir -p "$log"

. tools/gpu_steps.sh

build() {
  mkdir -p build/gpu
  # Numerics `fast` link LibTorch: the one that a Python here has, if it is of our version (.deps has one otherwise).
  local torch fast=
  if [ ! -e build/gpu/build.ninja ]; then
    torch=$(python3 -c 'import torch; print(torch.__path__[0] if torch.__version__.startswith("2.11.0") else "")' 2>/dev/null)
    cmake --preset gpu ${torch:+-DIHA_TORCH_ROOT="$torch"} || return 1
  fi
  # Without gRPC, Protobuf and SQLite, which hosts with GPUs often lack.
  [ -z "$(ninja -C build/gpu -t query iha_cuda_fast_backend 2>/dev/null)" ] || fast=iha_cuda_fast_backend
  ninja -C build/gpu $fast iha_cuda_backend test_cuda_runtime test_cuda_module test_gpu_kernels_cuda test_device_cuda \
    gpu_bench engine_bench iha-tool
}
sanitizer() {
  command -v compute-sanitizer >/dev/null || { echo "skipped: no compute-sanitizer on PATH"; return 0; }
  compute-sanitizer --tool "$1" --error-exitcode 9 build/gpu/tests/test_gpu_kernels_cuda --gtest_brief=1 \
    --gtest_filter="$sanitizer_tests"
}
oracles() {
  local oracle found=()
  for oracle in "${IHA_EVAL_CASES:-/nonexistent}"/{hf_families,attention_oracles}/*/expected.safetensors; do
    [ ! -e "$oracle" ] || found+=("${oracle%/*}")
  done
  [ ${#found[@]} -gt 0 ] || { echo "skipped: no data root"; return 0; }
  # A report a line: of thousands of characters, hence the count.
  build/gpu/bin/iha-tool check-oracle --device cuda "$@" "${found[@]}" && echo "${#found[@]} checkpoints within their tolerance"
}
fast_oracles() {
  build/gpu/bin/iha-tool cuda-fast-backend >/dev/null 2>&1 || { echo "skipped: no numerics fast here"; return 0; }
  oracles --numerics fast
}
export -f build sanitizer oracles fast_oracles
export sanitizer_tests

step build 330 bash -c build
tests=build/gpu/tests
step runtime 20 "$tests/test_cuda_runtime" --gtest_brief=1
step module 30 "$tests/test_cuda_module" --gtest_brief=1
# One process a binary: each new one would make its own context on the GPU.
step kernels 120 "$tests/test_gpu_kernels_cuda" --gtest_brief=1
step models 120 "$tests/test_device_cuda" --gtest_brief=1
step oracles 90 bash -c oracles
step fast 90 bash -c fast_oracles
step memcheck 60 bash -c 'sanitizer memcheck'
step racecheck 60 bash -c 'sanitizer racecheck'
step speeds 60 build/gpu/bin/gpu_bench
step engine 120 build/gpu/bin/engine_bench
step engine-fast 120 build/gpu/bin/engine_bench fast
printf '\n'
cat "$log/speeds" "$log/engine" "$log/engine-fast" 2>/dev/null
[ $failed = 0 ] || { printf 'gpu: a step failed; logs: %s/\n' "$log" >&2; exit 1; }
