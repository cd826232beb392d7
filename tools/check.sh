#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The check of the project, in tiers: installs what it needs, builds, tests, and looks at format, layers and data races.
# Each part runs in a process group of its own, which is gone when the part ends, also after Ctrl-C.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

usage() {
  cat <<'TEXT'
usage: tools/check.sh [--fast | --full | --long]
  --fast     release build and its tests that are not slow, nothing else: what tests/install runs on an empty machine
  (nothing)  before each change lands, 30 minutes on a fresh machine with 2 cores: --fast, format, layers, test coverage rules,
             shell scripts, TSan over the runtime
  --full     before a release, 90 minutes: the default, slow tests, ASan and UBSan, short fuzz runs, ten minutes of clang-tidy on the
             sources that changed last, and empty machines (tests/install): a cold quickstart, quickstart with parts of the group
             test installed, and --fast where the time allows it
  --long     without a limit: --full with --fast on an empty machine, a million inputs for each fuzz target and clang-tidy on
             everything, a thousand kills, two soaks of an hour; ends with the row for tests/README.md
TEXT
}

tier=default
case ${1:-} in
'') ;;
--fast | --full | --long) tier=${1#--} ;;
-h | --help)
  usage
  exit 0
  ;;
*)
  echo "check.sh: unknown argument '$1', expected --fast, --full, --long or nothing" >&2
  exit 2
  ;;
esac

reports=$(mktemp -d)
group=
summary=() skips=()
passed=0 failed=0 skipped=0
cores=$(nproc)
export DG_CACHE=$PWD/build/kernel-cache # tests that compile the same kernels share them

stop_group() {
  [[ -n $group ]] || return 0
  kill -TERM -- "-$group" 2>/dev/null
  # The runs of tests/install remove their roots.
  for _ in {1..50}; do pgrep -g "$group" >/dev/null || break; sleep 0.2; done
  kill -KILL -- "-$group" 2>/dev/null
  group=
}
trap 'stop_group; rm -rf "$reports"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# part NAME COMMAND...: runs the command in its own process group, notes its seconds and whether it succeeded.
part() {
  local name=$1 started=$SECONDS status
  shift
  echo "== $name"
  set -m
  "$@" </dev/null &
  group=$!
  set +m
  wait "$group"
  status=$?
  # What a test has killed last is the system's to bury, which takes a moment.
  for _ in {1..10}; do pgrep -g "$group" >/dev/null || break; sleep 0.5; done
  if pgrep -g "$group" >/dev/null; then
    echo "check.sh: $name left processes behind: $(pgrep -l -g "$group" | tr '\n' ' ')" >&2
    stop_group
    status=1
  fi
  group=
  if [[ $status -eq 0 ]]; then
    summary+=("$(printf '%6d s  ok      %s' $((SECONDS - started)) "$name")")
  else
    summary+=("$(printf '%6d s  FAILED  %s' $((SECONDS - started)) "$name")")
  fi
  return "$status"
}

# check NAME COMMAND...: a part that counts as one test.
check() {
  if part "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# skip NAME REASON: says that a part did not run, and counts it.
skip() {
  summary+=("$(printf '%6d s  SKIPPED %s: %s' 0 "$1" "$2")")
  skips+=("$1: $2")
  skipped=$((skipped + 1))
}

# build PRESET [cmake arguments]
build() {
  local preset=$1
  shift
  cmake --preset "$preset" -DDG_BUILD_TESTS=ON "$@" >"$reports/$preset-configure.log" 2>&1 || {
    cat "$reports/$preset-configure.log" >&2
    return 1
  }
  cmake --build --preset "$preset" -- --quiet
}

# run_tests NAME PRESET [ctest arguments]: runs ctest and adds its counts, with the skipped cases inside gtest binaries.
run_tests() {
  local name=$1 preset=$2 report=$reports/$1.xml counts
  shift 2
  part "$name" ctest --test-dir "build/$preset" -j "$cores" --output-on-failure --timeout 300 --no-tests=error \
    --test-output-size-passed 1000000 --output-junit "$report" --progress "$@"
  local status=$?
  if ! counts=$(python3 tools/ctest_counts.py "$report" "$reports/skips"); then
    failed=$((failed + 1))
    return
  fi
  local run_passed run_failed run_skipped
  read -r run_passed run_failed run_skipped <<<"$counts"
  while read -r line; do skips+=("$name: $line"); done <"$reports/skips"
  # A run that failed without a failed test (no tests, processes left) is a failure too.
  [[ $status -eq 0 || $run_failed -gt 0 ]] || run_failed=1
  passed=$((passed + run_passed)) failed=$((failed + run_failed)) skipped=$((skipped + run_skipped))
}

# Leaves the folder of the instrumented oneTBB in $reports/tbb, or nothing where it cannot be made.
prepare_tsan_tbb() {
  tools/tsan-tbb.sh >"$reports/tbb" || : >"$reports/tbb"
}

check_format() {
  git ls-files -z -- '*.cpp' '*.h' | xargs -0 -r clang-format-19 --dry-run -Werror
}

check_scripts() {
  git ls-files -z -- '*.sh' .ci/run | xargs -0 -r shellcheck
}

# check_tidy [SECONDS]: clang-tidy on the sources of build/release, those first that changed last, until the seconds are over.
check_tidy() {
  local until=$(($(date +%s) + ${1:-1000000})) files=$reports/tidy-files bad=$reports/tidy-bad done=$reports/tidy-done
  : >"$bad" && : >"$done"
  git log --format= --name-only -- '*.cpp' | awk '!seen[$0]++' | while read -r file; do
    if grep -qF "\"$PWD/$file\"" build/release/compile_commands.json; then echo "$file"; fi
  done >"$files"
  # shellcheck disable=SC2016 # the words are those of the inner shell
  xargs -r -P "$cores" -n 1 sh -c '[ "$(date +%s)" -lt "$0" ] || exit 0
    if clang-tidy-19 --quiet -p build/release "$3" 2>/dev/null; then echo "$3" >>"$1"; else echo "$3" >>"$2"; fi' \
    "$until" "$done" "$bad" <"$files"
  echo "clang-tidy: $(($(wc -l <"$done") + $(wc -l <"$bad"))) of $(wc -l <"$files") sources, those first that changed last"
  [[ ! -s $bad ]]
}

check_sources() {
  check layers tools/check-layers
  check passes tools/check-passes
  check test-rules tools/check-tests
  check format check_format
  check scripts check_scripts
}

check_release() {
  if part "build release" build release; then
    passed=$((passed + 1))
    run_tests "tests release" release -LE slow
  else
    failed=$((failed + 1))
    skip "tests release" "the build failed"
  fi
}

check_tsan() {
  local tbb
  part "oneTBB for tsan" prepare_tsan_tbb
  tbb=$(cat "$reports/tbb")
  if [[ -z $tbb ]]; then
    skip tsan "no oneTBB with ThreadSanitizer on this machine; see the message above"
  elif part "build tsan" build tsan "-DCMAKE_PREFIX_PATH=$tbb"; then
    passed=$((passed + 1))
    # A rank that is stopped ends without joining the threads of its libraries: that is no race.
    TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/tsan.supp:report_thread_leaks=0" \
      run_tests "tests tsan" tsan -L "^threads$" -LE slow
  else
    failed=$((failed + 1))
    skip "tests tsan" "the build failed"
  fi
}

check_asan() {
  if part "build asan" build asan; then
    passed=$((passed + 1))
    # LLVM's allocator poisons memory in its headers, and the shared library, which is not instrumented, does not unpoison it.
    ASAN_OPTIONS=allow_user_poisoning=0:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
      LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0" run_tests "tests asan" asan -LE slow
  else
    failed=$((failed + 1))
    skip "tests asan" "the build failed"
  fi
}

# check_fuzz [arguments of tests/fuzz/run.sh]
check_fuzz() {
  if part "build fuzz" build fuzz; then
    passed=$((passed + 1))
    check "fuzz $*" tests/fuzz/run.sh "$@"
  else
    failed=$((failed + 1))
    skip "fuzz $*" "the build failed"
  fi
}

run_clean_roots() {
  tests/install/run.sh "$@" | tee "$reports/install"
}

# check_clean_roots SCENARIO...: empty machines; what a cold quickstart took goes into the summary.
check_clean_roots() {
  local reason cold
  if reason=$(tests/install/run.sh --probe); then
    check "clean roots: $*" run_clean_roots "$@"
    cold=$(grep '^cold quickstart' "$reports/install") && summary+=("          $cold")
  else
    skip "clean roots: $*" "$reason"
  fi
}

check_long() {
  local mesh
  run_tests "a thousand kills" release -R '^multirank_many_kills_test$' --repeat until-fail:10
  for mesh in data=2 data=2,pipe=2; do
    check "soak of an hour, $mesh" env DG_BIN="$PWD/build/release/bin" PYTHONDONTWRITEBYTECODE=1 \
      python3 tests/multirank/soak.py --minutes 60 --mesh "$mesh"
  done
}

started=$SECONDS
groups=(build test)
[[ $tier != full && $tier != long ]] || groups+=(full)
# In the foreground: sudo may have to ask.
if ! tools/install.sh "${groups[@]}"; then exit 1; fi
summary+=("$(printf '%6d s  ok      install' $((SECONDS - started)))")

[[ $tier == fast ]] || check_sources
check_release
[[ $tier == fast ]] || check_tsan
if [[ $tier == full || $tier == long ]]; then
  run_tests "slow tests release" release -L slow
  check_asan
  if [[ $tier == long ]]; then check_fuzz --runs 1000000; else check_fuzz --runs 20000 --seconds 20; fi
  if [[ $tier == long ]]; then check clang-tidy check_tidy; else check clang-tidy check_tidy 600; fi
  # The three scenarios take about 25 minutes, which may be more than what is left of the 90.
  if [[ $tier == long || $((SECONDS - started)) -lt 3900 ]]; then
    check_clean_roots quickstart check matrix
  else
    check_clean_roots quickstart matrix
    skip "clean roots: check" "65 of 90 minutes were gone; --long always runs it"
  fi
fi
[[ $tier != long ]] || check_long

echo
echo "== summary"
printf '%s\n' "${summary[@]}"
[[ ${#skips[@]} -eq 0 ]] || printf 'skipped: %s\n' "${skips[@]}"
printf '%6d s  in all\n' $((SECONDS - started))
echo "$passed passed, $failed failed, $skipped skipped"
if [[ $tier == long ]]; then
  echo "| $(date -u +%F) | $(git rev-parse --short HEAD) | $cores | $(((SECONDS - started) / 60)) min | $passed passed, $failed failed, $skipped skipped |"
fi
[[ $failed -eq 0 ]]
