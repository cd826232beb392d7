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

/// Tells apart the parts of one composite by the composite's own label, and remembers those that are composites again.
class LabelParts : public OpBuilder::Listener {
public:
  LabelParts(StringAttr label, SmallVectorImpl<CompositeOp> &worklist) : label(label), worklist(worklist) {}
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override {
    setPlace(op, withLabel(getPlace(op), label.getValue()));
    if (auto composite = dyn_cast<CompositeOp>(op))
      worklist.push_back(composite);
  }

private:
  StringAttr label;
  SmallVectorImpl<CompositeOp> &worklist;
};

struct DecomposePass : impl::DecomposeBase<DecomposePass> {
  void runOnOperation() override {
    SmallVector<CompositeOp> worklist;
    getOperation().walk([&](CompositeOp op) { worklist.push_back(op); });
    // The list grows while it is worked on.
    for (size_t next = 0; next < worklist.size(); ++next) {
      CompositeOp op = worklist[next];
      LabelParts listener(getPlace(op).getLabel(), worklist);
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
