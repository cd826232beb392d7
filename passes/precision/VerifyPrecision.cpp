// SPDX-License-Identifier: Apache-2.0
// Closes the precision phase: from here on every cast changes the type, and none undoes the one before it. That updates
// have the types of their parameters is verified with each op.
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_VERIFYPRECISION
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct VerifyPrecisionPass : impl::VerifyPrecisionBase<VerifyPrecisionPass> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>())
      if (failed(verify(graph)))
        return signalPassFailure();
  }

private:
  static LogicalResult verify(GraphOp graph) {
    for (auto op : graph.getBody().front().getOps<CastOp>()) {
      Type from = tensorOf(op.getInput()).getElementType();
      if (from == op.getTo())
        return op.emitOpError() << "casts " << from << " to itself after the precision phase";
      auto before = op.getInput().getDefiningOp<CastOp>();
      if (before && isHalf(tensorOf(before.getInput()).getElementType()) && from.isF32() && isHalf(op.getTo()) &&
          getPlace(before).getPhase() == getPlace(op).getPhase())
        return op.emitOpError() << "narrows what was widened in the same phase, expected the value before both casts";
    }
    return success();
  }
};

} // namespace
} // namespace dg::passes
