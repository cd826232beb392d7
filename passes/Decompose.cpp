// SPDX-License-Identifier: Apache-2.0
// Replaces composite ops by their parts, so that gradient, sharding and lowering are those of the parts.
#include "ir/Dialect.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_DECOMPOSE
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// Tells apart the parts of one composite by the composite's own label.
class LabelParts : public OpBuilder::Listener {
public:
  explicit LabelParts(StringAttr label) : label(label) {}
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    setPlace(op, withLabel(getPlace(op), label.getValue()));
  }

private:
  StringAttr label;
};

struct DecomposePass : impl::DecomposeBase<DecomposePass> {
  void runOnOperation() override {
    SmallVector<CompositeOp> worklist;
    getOperation().walk([&](CompositeOp op) { worklist.push_back(op); });
    for (CompositeOp op : worklist) {
      LabelParts listener(getPlace(op).getLabel());
      OpBuilder builder(op->getContext(), &listener);
      builder.setInsertionPoint(op);
      SmallVector<Value> parts = op.decompose(builder);
      if (parts.empty())
        continue;
      op->replaceAllUsesWith(parts);
      op->erase();
    }
  }
};

} // namespace
} // namespace dg::passes
