// SPDX-License-Identifier: Apache-2.0
// Says which backward ops may wait (Qi et al., "Zero Bubble Pipeline Parallelism", 2023): those whose results nothing
// needs but the update. A stage sends the gradients of its inputs on first, and makes those of its weights where it
// would otherwise wait.
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"
#include "passes/train/WeightGradients.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_MARKWEIGHTGRADIENTS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// What an op of the same origin uses is part of the same gradient; another origin is a layer before it.
bool mayWait(Operation &op) {
  return llvm::all_of(op.getUsers(), [&](Operation *user) {
    return getPlace(user).getPhase() == Phase::update ||
           (isWeightGradient(user) && getPlace(user).getOrigin() == getPlace(&op).getOrigin());
  });
}

struct MarkWeightGradientsPass : impl::MarkWeightGradientsBase<MarkWeightGradientsPass> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>())
      for (Operation &op : llvm::reverse(graph.getBody().front()))
        if (!isa<ReturnOp>(op) && getPlace(&op).getPhase() == Phase::backward && mayWait(op))
          op.setAttr(weightGradientName, UnitAttr::get(&getContext()));
  }
};

} // namespace
} // namespace dg::passes
