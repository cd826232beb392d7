#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The whole check of the project: installs what it needs, builds, tests, and looks at format, layers and data races.
# Each part runs in a process group of its own, which is gone when the part ends, also after Ctrl-C.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

full=
case ${1:-} in
'') ;;
--full) full=1 ;;
-h | --help)
  echo "usage: tools/check.sh [--full]"
  echo "  default  release build, tests that are not slow, format, layers, test coverage rules, TSan over the runtime"
  echo "  --full   also slow tests, ASan and UBSan, short fuzz runs, clang-tidy on the folders that differ from \$DG_TIDY_BASE"
  echo "           (default origin/main; everything where that names nothing)"
  exit 0
  ;;
*)
  echo "check.sh: unknown argument '$1', expected --full or nothing" >&2
  exit 2
  ;;
esac

reports=$(mktemp -d)
group=
summary=() skips=()
passed=0 failed=0 skipped=0
cores=$(nproc)

stop_group() {
  [[ -n $group ]] || return 0
  kill -TERM -- "-$group" 2>/dev/null && sleep 1
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
  for _ in {1..10}; do pgrep -g "$group" >/dev/null && sleep 0.5; done
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

# clang-tidy on the translation units of every folder in which something differs from the base.
check_tidy() {
  local base=${DG_TIDY_BASE:-origin/main} folder folders patterns=()
  folders=$(git diff --name-only "$base" -- '*.cpp' '*.h' 2>/dev/null | xargs -r -n1 dirname | sort -u)
  [[ -n $folders ]] || folders=$(git ls-files -- '*.cpp' | xargs -r -n1 dirname | sort -u)
  while read -r folder; do patterns+=("^$PWD/$folder/[^/]*\\.cpp\$"); done <<<"$folders"
  run-clang-tidy-19 -quiet -j "$cores" -p build/release "${patterns[@]}" 2>/dev/null
}

started=$SECONDS
# In the foreground: sudo may have to ask.
if ! tools/install.sh build test; then exit 1; fi
summary+=("$(printf '%6d s  ok      install' $((SECONDS - started)))")

check layers tools/check-layers
check test-rules tools/check-tests
check format check_format
check scripts check_scripts

if part "build release" build release; then
  passed=$((passed + 1))
  run_tests "tests release" release -LE slow
else
  failed=$((failed + 1))
  skip "tests release" "the build failed"
fi

part "oneTBB for tsan" prepare_tsan_tbb
tbb=$(cat "$reports/tbb")
if [[ -n $tbb ]]; then
  if part "build tsan" build tsan "-DCMAKE_PREFIX_PATH=$tbb"; then
    passed=$((passed + 1))
    # A rank that is stopped ends without joining the threads of its libraries: that is no race.
    TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/tsan.supp:report_thread_leaks=0" \
      run_tests "tests tsan" tsan -LE slow
  else
    failed=$((failed + 1))
    skip "tests tsan" "the build failed"
  fi
else
  skip tsan "no oneTBB with ThreadSanitizer on this machine; see the message above"
fi

if [[ -n $full ]]; then
  run_tests "slow tests release" release -L slow
  if part "build asan" build asan; then
    passed=$((passed + 1))
    # LLVM's allocator poisons memory in its headers, and the shared library, which is not instrumented, does not unpoison it.
    ASAN_OPTIONS=allow_user_poisoning=0:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1 \
      LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp:print_suppressions=0" run_tests "tests asan" asan -LE slow
  else
    failed=$((failed + 1))
    skip "tests asan" "the build failed"
  fi
  if part "build fuzz" build fuzz; then
    passed=$((passed + 1))
    check "short fuzz runs" tests/fuzz/run.sh --runs 20000 --seconds 20
  else
    failed=$((failed + 1))
    skip "short fuzz runs" "the build failed"
  fi
  check clang-tidy check_tidy
fi

echo
echo "== summary"
printf '%s\n' "${summary[@]}"
[[ ${#skips[@]} -eq 0 ]] || printf 'skipped: %s\n' "${skips[@]}"
printf '%6d s  in all\n' $((SECONDS - started))
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
