// SPDX-License-Identifier: Apache-2.0
// Closes the shape phase: from here on every value has a static type and each op of the author its number.
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_VERIFYSHAPES
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct VerifyShapesPass : impl::VerifyShapesBase<VerifyShapesPass> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>())
      if (failed(verify(graph)))
        return signalPassFailure();
  }

private:
  static LogicalResult verify(GraphOp graph) {
    for (Operation &op : graph.getBody().front())
      if (getPlace(&op).getOrigin() < 0)
        return op.emitOpError("has no number after the shape phase, expected one from --dg-number-ops");
    WalkResult walk = graph.walk([](Operation *op) {
      for (Region &region : op->getRegions())
        for (BlockArgument argument : region.getArguments())
          if (failed(verify(op, argument.getType(), "an argument")))
            return WalkResult::interrupt();
      for (Type type : op->getResultTypes())
        if (failed(verify(op, type, "a result")))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }

  static LogicalResult verify(Operation *op, Type type, StringRef what) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && tensor.hasStaticShape())
      return success();
    return op->emitOpError() << "has " << what << " of type " << type
                             << " after the shape phase, expected a tensor of static shape from --dg-deduce-types";
  }
};

} // namespace
} // namespace dg::passes
