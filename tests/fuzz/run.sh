#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs fuzz targets, each from its seeds and what earlier runs found, until it has held so many inputs. A crasher is left in
# build/fuzz/crashers.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

all=(idx safetensors npy tar csv image package link http manifest tokens cluster trace facts object frames flags plan text onnx bytecode)
runs=1000000 seconds=0 longest="" targets=()
usage="usage: tests/fuzz/run.sh [--runs N (default 1000000)] [--seconds N (at most; default 0 = no limit)] [--max-len BYTES] [TARGET...]
targets: ${all[*]} (default: all); needs the presets release and fuzz: cmake --preset fuzz && cmake --build --preset fuzz"
while [[ $# -gt 0 ]]; do
  case $1 in
  --runs) runs=${2:?"$usage"}; shift ;;
  --seconds) seconds=${2:?"$usage"}; shift ;;
  --max-len) longest=${2:?"$usage"}; shift ;;
  -h | --help) echo "$usage"; exit 0 ;;
  -*) echo "$usage" >&2; exit 2 ;;
  *) targets+=("$1") ;;
  esac
  shift
done
[[ ${#targets[@]} -gt 0 ]] || targets=("${all[@]}")

status=0
for target in "${targets[@]}"; do
  program=build/fuzz/bin/fuzz_$target seeds=build/fuzz/seeds/$target found=build/fuzz/found/$target
  [[ -x $program ]] || { echo "run.sh: $program is missing: cmake --preset fuzz && cmake --build --preset fuzz" >&2; exit 2; }
  mkdir -p "$found" build/fuzz/crashers
  [[ -d $seeds ]] || tests/fuzz/make_seeds.py build/release/bin build/fuzz/seeds "$target" || exit 2
  # Inputs are small, so that many are tried in a second; plans cannot be smaller. The target itself counts the second of
  # processor time that an input has; the time-out on the wall is for what never ends. No allocation may be large that a few
  # kilobytes ask for.
  most=4096
  [[ $target != plan && $target != object ]] || most=8192
  [[ -z $longest ]] || most=$longest
  if ! "$program" -runs="$runs" -max_total_time="$seconds" -max_len="$most" -timeout=300 -rss_limit_mb=2048 -malloc_limit_mb=512 \
    -print_final_stats=1 -verbosity=1 -artifact_prefix="build/fuzz/crashers/$target-" "$found" "$seeds" "tests/fuzz/corpus/$target" \
    >"build/fuzz/$target.log" 2>&1; then
    status=1
    tail -n 40 "build/fuzz/$target.log" >&2
    echo "run.sh: $target FAILED; the input is in build/fuzz/crashers, all output in build/fuzz/$target.log" >&2
  fi
  sed -n -E 's/^stat::(number_of_executed_units|average_exec_per_sec|peak_rss_mb): *([0-9]+)/\1 \2/p' "build/fuzz/$target.log" |
    tr '\n' ' ' | sed "s/^/$target: /"
  echo
done
exit $status
