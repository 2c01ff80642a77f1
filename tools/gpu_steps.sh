# Steps of `./dev gpu` (sourced by tools/gpu.sh and its test): step NAME SECONDS COMMAND...
#
# Prints a line for each: its verdict, seconds and last line; its output is in $log. A step that runs longer than its
# share, or would end after $whole seconds, fails; so does one whose tests were all left out because CUDA finds no GPU:
# nothing was tested there, though the host has one. A last line "skipped: REASON" is the step's own word. `failed` is 1
# after a step that failed.

# Small tests of every kernel with memory of its own, for compute-sanitizer: minutes with it, a second without.
sanitizer_tests='RmsNormGpu.*:RopeGpu.*:Elementwise*:MlpGpu.WithinTheBoundOfTheReference:EpilogueGpu.NanStaysInItsRow'
sanitizer_tests+=':IhaMixRopeGpu.TokensDoNotSeeTheBatch:IhaCollapseGpu.GlobalXsaKeepsTokensApart'
sanitizer_tests+=':IhaCollapseGpu.NanStaysInItsRowAndTokensApart:MatmulGpu.NanStaysInItsRowAndColumn'
sanitizer_tests+=':AttentionGpu.RowsDoNotSeeBatchOrChunk:AttentionGpu.SplitRowsDoNotSeeTheBatch'
sanitizer_tests+=':TalkingHeadsGpu.RowsDoNotSeeBatchOrChunk:KvPagesGpu.InEverySchedule'
sanitizer_tests+=':SampleGpu.RowsOfABatchInEverySchedule'

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
  local last
  last=$(grep -v '^$' "$log/$name" | tail -n 1)
  if grep -qF '[  SKIPPED ] no GPU' "$log/$name"; then
    verdict=FAILED last="all tests left out: $(grep -F '[  SKIPPED ] no GPU' "$log/$name" | head -n 1)"
  fi
  case $verdict$last in passedskipped:*) verdict=skipped ;; esac
  [ $verdict != FAILED ] || failed=1
  printf '%-12s %-7s %4d s  %s\n' "$name" "$verdict" $((SECONDS - begin)) "$last"
}
