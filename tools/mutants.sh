#!/usr/bin/env bash
# Seeded bugs: tools/mutants.sh changed|all|NAME (called by `./dev mutants`).
#
# tests/mutants/NAME.patch is a diff with two header lines: "# target: T" (what to build) and "# test: REGEX" (the ctest
# names that must fail). In a scratch worktree each test must pass without the patch and fail with it; a mutant that
# survives, no longer applies or does not compile fails the run. "changed" takes those whose files, or the patch itself,
# differ from IHA_EVAL_MUTANTS_BASE (default: the merge base with origin/main, and if that is HEAD, 20 commits back).
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
scratch=$root/build/mutants/tree
say() { printf 'mutants: %s\n' "$*" >&2; }
field() { sed -n "s/^# $1: *//p" "$2" | head -n 1; }
patched_files() { sed -n 's,^+++ b/,,p' "$1"; }

mode=${1:-changed}
case $mode in
  all | changed) ;;
  *) [ -e "tests/mutants/$mode.patch" ] || { say "expected changed, all or the name of a patch in tests/mutants, found '$mode'"; exit 2; } ;;
esac

changed_files() {
  local base=${IHA_EVAL_MUTANTS_BASE:-} head
  head=$(git rev-parse HEAD)
  [ -n "$base" ] || base=$(git merge-base HEAD origin/main 2>/dev/null || echo "$head")
  if [ "$(git rev-parse "$base")" = "$head" ]; then
    base=$(git rev-list --first-parent --max-count=21 HEAD | tail -n 1)
  fi
  git diff --name-only "$base"
  git ls-files -o --exclude-standard
}

shopt -s nullglob
patches=()
if [ "$mode" = all ]; then
  patches=("$root"/tests/mutants/*.patch)
elif [ "$mode" != changed ]; then
  patches=("$root/tests/mutants/$mode.patch")
else
  changed=$(changed_files)
  for patch in "$root"/tests/mutants/*.patch; do
    for file in "${patch#"$root"/}" $(patched_files "$patch"); do
      if grep -qxF "$file" <<<"$changed"; then patches+=("$patch"); break; fi
    done
  done
fi
if [ ${#patches[@]} -eq 0 ]; then
  say "nothing to check ($mode)"
  exit 0
fi

bad=0
fail() { say "$*"; bad=1; }
for patch in "${patches[@]}"; do
  [ -n "$(field target "$patch")" ] && [ -n "$(field test "$patch")" ] ||
    { say "$patch: expected the header lines '# target: T' and '# test: REGEX'"; exit 1; }
done

# The scratch tree holds HEAD plus what is changed in tracked files here.
commit=$(git -c user.name=mutants -c user.email=mutants@localhost stash create)
[ -n "$commit" ] || commit=$(git rev-parse HEAD)
git worktree prune
if [ -e "$scratch/.git" ]; then
  git -C "$scratch" checkout -q -f --detach "$commit"
else
  rm -rf "$scratch"
  git worktree add -q -f --detach "$scratch" "$commit"
fi
[ -e "$scratch/.deps" ] || ln -sfn "$root/.deps" "$scratch/.deps"
export CCACHE_BASEDIR=$scratch
cd "$scratch"
[ -e build/release/build.ninja ] || cmake --preset release >/dev/null
log=$root/build/mutants/log
mkdir -p "$log"
build() { ninja -C build/release -j "$(nproc)" "$@"; }
run_tests() { ctest --test-dir build/release -j "$(nproc)" --no-tests=error --output-on-failure -R "$1"; }

targets=$(for patch in "${patches[@]}"; do field target "$patch"; done | sort -u)
# shellcheck disable=SC2086
build $targets >"$log/base.build" 2>&1 || { tail -n 30 "$log/base.build" >&2; say "the tree does not build without a mutant"; exit 1; }
# Many patches share a test: without a mutant each runs once.
runnable=()
declare -A base=() # by test: passes, or the log of why not
for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  tests=$(field test "$patch")
  if [ -z "${base[$tests]:-}" ]; then
    base[$tests]=build/mutants/log/$name.base
    if run_tests "$tests" >"$log/$name.base" 2>&1; then base[$tests]=passes; fi
  fi
  if [ "${base[$tests]}" = passes ]; then
    runnable+=("$patch")
  else
    fail "$name: its test '$tests' does not pass without the mutant (or matches nothing); log: ${base[$tests]}"
  fi
done

for patch in "${runnable[@]}"; do
  name=$(basename "$patch" .patch)
  if ! git apply "$patch" 2>"$log/$name.apply"; then
    fail "$name: no longer applies ($(head -n 1 "$log/$name.apply")); make the patch anew or remove it"
    continue
  fi
  # shellcheck disable=SC2046
  if ! build "$(field target "$patch")" >"$log/$name.build" 2>&1; then
    fail "$name: does not compile; log: build/mutants/log/$name.build"
  elif run_tests "$(field test "$patch")" >"$log/$name.test" 2>&1; then
    fail "$name: survived: '$(field test "$patch")' passes with the bug in place"
  else
    say "$name: caught by '$(field test "$patch")'"
  fi
  git checkout -q -f --detach "$commit"
done
[ $bad = 0 ] || exit 1
say "${#patches[@]} of ${#patches[@]} caught"
