#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From nothing to a model trained on two ranks: installs, builds, compiles LeNet, trains it on Fashion-MNIST, draws the plan.
# Everything it makes is in build/quickstart; nothing else of the tree is touched.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  echo "usage: tools/quickstart.sh [--epochs N] [--configure-only]"
  echo "  --epochs N         trains N epochs (default: 3)"
  echo "  --configure-only   stops once build/release is configured: what tests/install tries on many machines"
}

epochs=3 configure_only=
while [[ $# -gt 0 ]]; do
  case $1 in
  --epochs)
    epochs=${2:?"quickstart.sh: --epochs needs a number"}
    shift
    ;;
  --configure-only) configure_only=1 ;;
  -h | --help)
    usage
    exit 0
    ;;
  *)
    echo "quickstart.sh: unknown argument '$1', expected --epochs N or --configure-only" >&2
    exit 2
    ;;
  esac
  shift
done

out=build/quickstart
bin=build/release/bin
SECONDS=0
say() { printf '[%4d s] %s\n' "$SECONDS" "$*"; }
fail() {
  say "failed: $*" >&2
  exit 1
}

say "installing what is missing (tools/packages, group build)"
tools/install.sh build

say "building dgc, dgrun and dgviz into build/release"
mkdir -p "$out"
# The same build folder as tools/check.sh, which switches the tests on when it comes after. Tests are never configured here: they need
# the packages of the group test, of which any part may be installed. A folder that is configured already is taken as it is.
if [[ ! -e build/release/build.ninja ]]; then
  cmake --preset release -DDG_BUILD_TESTS=OFF >"$out/configure.log" 2>&1 || {
    tail -n 20 "$out/configure.log" >&2
    fail "cmake did not configure; the whole log is $out/configure.log"
  }
fi
if [[ -n $configure_only ]]; then
  say "build/release is configured"
  exit 0
fi
cmake --build --preset release --target dgc dgrun dgviz -- --quiet || fail "the build stopped; the compiler's message is above"

say "compiling examples/lenet.mlir for two ranks"
"$bin/dgc" examples/lenet.mlir --batch 64 --mesh data=2 -o "$out/lenet.dgx" || fail "dgc refused the model"

data=$(dpkg -L dataset-fashion-mnist | sed -n 's,/train-images-idx3-ubyte.gz$,,p')
[[ -n $data ]] || fail "the package dataset-fashion-mnist has no train-images-idx3-ubyte.gz"

say "training $epochs epochs on Fashion-MNIST, two processes on this machine"
train=("$bin/dgrun" "$out/lenet.dgx" -n 2
  --data "x=$data/train-images-idx3-ubyte.gz" --data "y=$data/train-labels-idx1-ubyte.gz"
  --eval-data "x=$data/t10k-images-idx3-ubyte.gz" --eval-data "y=$data/t10k-labels-idx1-ubyte.gz"
  --normalize "x=0.5,0.5" --epochs "$epochs" --lr-schedule "cosine:epochs=$epochs" --checkpoint "$out/checkpoint")
rm -rf "$out/checkpoint"
"${train[@]}" --json | tee "$out/train.jsonl" | while read -r line; do
  case $line in
  *'"event":"epoch"'* | *'"event": "epoch"'* | *'"event":"eval"'* | *'"event": "eval"'*) say "  $line" ;;
  esac
done || fail "dgrun stopped; its message is above, its events are in $out/train.jsonl"
accuracy=$(sed -n '/"eval"/s/.*"accuracy": *\([0-9.]*\).*/\1/p' "$out/train.jsonl" | tail -n 1)
[[ -n $accuracy ]] || fail "dgrun ended without an eval event in $out/train.jsonl"

say "drawing the plan"
"$bin/dgviz" "$out/lenet.dgx" -o "$out/plan.html" || fail "dgviz could not draw the plan"

percent=$(awk -v a="$accuracy" 'BEGIN { printf "%.2f", 100 * a }')
cat <<TEXT

Made in $out:
  lenet.dgx    the compiled job ($(stat -c %s "$out/lenet.dgx") bytes; unzip -l lists it)
  checkpoint   the trained parameters, as safetensors
  plan.html    the plan as a page; open it in a browser
Test accuracy after $epochs epochs: $percent %  ($SECONDS s in all)

Three commands to try next:
  $bin/dgviz $out/lenet.dgx --text
  $bin/dgc examples/lenet.mlir --batch 64 --mesh pipe=2 --microbatches 4 --schedule 1f1b -o $out/pipeline.dgx
  $bin/dgrun $out/pipeline.dgx -n 2 --data x=$data/train-images-idx3-ubyte.gz --data y=$data/train-labels-idx1-ubyte.gz \\
    --eval-data x=$data/t10k-images-idx3-ubyte.gz --eval-data y=$data/t10k-labels-idx1-ubyte.gz --normalize x=0.5,0.5 \\
    --epochs $((epochs + 1)) --lr-schedule constant --checkpoint $out/checkpoint --resume    # one more epoch, by another plan
TEXT
