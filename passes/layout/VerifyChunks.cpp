// SPDX-License-Identifier: Apache-2.0
// Closes the fuse and layout phases: what codegen gets. Losses and training forms are gone, and a fused op holds
// elementwise ops alone.
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_VERIFYCHUNKS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct VerifyChunksPass : impl::VerifyChunksBase<VerifyChunksPass> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>())
      for (Operation &op : graph.getBody().front())
        if (failed(verify(&op)))
          return signalPassFailure();
  }

private:
  static LogicalResult verify(Operation *op) {
    if (isa<LossOp, TrainingOp>(op))
      return op->emitOpError("is left after the layout phase, expected its parts, which have kernels");
    auto fused = dyn_cast<FusedOp>(op);
    if (!fused)
      return success();
    for (Operation &inner : fused.getBody().front())
      if (!isa<ElementwiseOp, ReturnOp, ConstantOp>(inner))
        return op->emitOpError() << "holds '" << inner.getName() << "', expected elementwise ops";
    return success();
  }
};

} // namespace
} // namespace dg::passes
