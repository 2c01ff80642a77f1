#!/usr/bin/env bash
# Everything that needs a GPU, within ten minutes (called by `./dev gpu`).
#
# A line for each step: its verdict, seconds and last line; its output is in build/gpu/log/. A step that runs longer than
# its share, or would end after the ten minutes, fails; the others still run. Speeds are printed in full.
set -uo pipefail
cd "$(dirname "$0")/.."
log=build/gpu/log
whole=580 failed=0
mkdir -p "$log"

# step NAME SECONDS COMMAND...
step() {
  local name=$1 limit=$2 begin=$SECONDS verdict=passed
  shift 2
  [ $((whole - SECONDS)) -gt "$limit" ] || limit=$((whole - SECONDS))
  if [ "$limit" -lt 1 ]; then
    verdict=FAILED
    echo "no time is left" >"$log/$name"
  else
    timeout -k 5 "$limit" "$@" >"$log/$name" 2>&1 || verdict=FAILED
  fi
  [ $verdict = passed ] || failed=1
  local last
  last=$(grep -v '^$' "$log/$name" | tail -n 1)
  case $verdict$last in passedskipped:*) verdict=skipped ;; esac
  printf '%-12s %-7s %4d s  %s\n' "$name" "$verdict" $((SECONDS - begin)) "$last"
}

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
    --gtest_filter='RmsNormGpu.*:RopeGpu.*:Elementwise*:IhaMixRopeGpu.TokensDoNotSeeTheBatch'
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
