// SPDX-License-Identifier: Apache-2.0
// Cross-entropy without the matrix of log-probabilities: one op for a log-softmax and the element of each row that the
// loss picks.
// Pattern of PickOp, LogSoftmaxOp: they become pick_log_softmax.
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/arrangement/IndexingOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/reduction/NormalizationOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_FUSESOFTMAXPICK
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct FuseSoftmaxPickPass : impl::FuseSoftmaxPickBase<FuseSoftmaxPickPass> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>())
      for (auto pick : llvm::make_early_inc_range(graph.getBody().front().getOps<PickOp>()))
        fuse(pick);
  }

private:
  static void fuse(PickOp pick) {
    auto softmax = pick.getInput().getDefiningOp<LogSoftmaxOp>();
    bool isOverLast = softmax && (!softmax.getAxis() || int64_t(*softmax.getAxis()) == -1 ||
                                  int64_t(*softmax.getAxis()) == tensorOf(softmax.getInput()).getRank() - 1);
    if (!isOverLast || !softmax->hasOneUse())
      return;
    OpBuilder builder(pick);
    // Logits of 16 bits are widened while they are read.
    Value logits = softmax.getInput();
    if (auto cast = logits.getDefiningOp<CastOp>();
        cast && cast.getTo() == arithmeticType(tensorOf(cast.getInput()).getElementType()))
      logits = cast.getInput();
    auto both = builder.create<PickLogSoftmaxOp>(pick.getLoc(), logits, pick.getIndices(), getPlace(pick));
    pick.getResult().replaceAllUsesWith(both.getResult());
    pick.erase();
    Operation *widening = softmax.getInput().getDefiningOp<CastOp>();
    softmax.erase();
    if (widening && widening->use_empty())
      widening->erase();
  }
};

} // namespace
} // namespace dg::passes
