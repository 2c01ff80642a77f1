#!/usr/bin/env bash
# `./dev gpu` where there is no GPU, the verdicts of its steps, and that compute-sanitizer sees every kernel:
# gpu_steps_test.sh SCRATCH TEST_GPU_KERNELS.
set -euo pipefail
cd "$(dirname "$0")/../.."
log=$1 kernels=$2 whole=1000 failed=0
rm -rf "$log"
mkdir -p "$log"
. tools/gpu_steps.sh
fail() { echo "gpu_steps_test: $*" >&2; exit 1; }

# expect NAME VERDICT FAILED LAST COMMAND...: what a step of the command says, and whether the run has failed by it.
expect() {
  local name=$1 verdict=$2 after=$3 last=$4 line
  shift 4
  failed=0
  step "$name" 5 "$@" >"$log/line"
  line=$(cat "$log/line")
  [[ $line =~ ^$name\ +$verdict\ +[0-9]+\ s\ \ (.*)$ ]] || fail "$name: found '$line'; expected $verdict"
  [ "${BASH_REMATCH[1]}" = "$last" ] || fail "$name: last line '${BASH_REMATCH[1]}'; expected '$last'"
  [ $failed = "$after" ] || fail "$name: failed is $failed"
}
expect good passed 0 'two' printf 'one\ntwo\n\n'
expect bad FAILED 1 'wrong' bash -c 'echo wrong; exit 3'
expect left skipped 0 'skipped: no data root' echo 'skipped: no data root'
expect slow FAILED 1 'begun' bash -c 'echo begun; sleep 60'
# GoogleTest exits 0 when an environment leaves all tests out.
mark='x.cc:16: Skipped
[  SKIPPED ] no GPU: forward compatibility
[  PASSED  ] 0 tests.'
expect none FAILED 1 'all tests left out: [  SKIPPED ] no GPU: forward compatibility' echo "$mark"

# A suite of kernels without a test there is one that no sanitizer sees.
suites() { "$kernels" --gtest_list_tests --gtest_filter="$1" | grep -oE '^[A-Za-z]+Gpu\.' | sort -u; }
missing=$(comm -13 <(suites "$sanitizer_tests") <(suites '*Gpu.*-MmaPeakGpu.*:RowBitsGpu.*:IhaPipelineGpu.*'))
[ -z "$missing" ] || fail "no test for compute-sanitizer of $missing"
IFS=: read -ra named <<<"$sanitizer_tests"
for name in "${named[@]}"; do
  [ -n "$(suites "$name")" ] || fail "no test $name"
done

if compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  echo "a GPU: ./dev gpu would run"
  exit 0
fi
code=0
said=$(./dev gpu) || code=$?
[ $code = 0 ] || fail "./dev gpu: exit $code"
[[ $said == "skipped: no GPU"* ]] || fail "./dev gpu: said '$said'"
