// SPDX-License-Identifier: Apache-2.0
// Replaces composite ops by their parts, so that gradient, sharding and lowering are those of the parts.
#include "ir/dialect/Dialect.h"
#include "passes/Passes.h"
#include "passes/shape/Composites.h"
#include "passes/shape/PartsOf.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_DECOMPOSE
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct DecomposePass : impl::DecomposeBase<DecomposePass> {
  using DecomposeBase::DecomposeBase;

  void runOnOperation() override { decomposeAll(getOperation(), storesScores); }
};

} // namespace

void decomposeAll(Operation *root, bool storesScores) {
  SmallVector<CompositeOp> worklist;
  root->walk([&](CompositeOp op) { worklist.push_back(op); });
  // Parts may be composite themselves.
  for (size_t next = 0; next < worklist.size(); ++next) {
    CompositeOp op = worklist[next];
    PartsOf listener(getPlace(op));
    OpBuilder builder(op->getContext(), &listener);
    builder.setInsertionPoint(op);
    Operation *before = op->getPrevNode();
    SmallVector<Value> parts = storesScores ? op.decomposeWithScores(builder) : op.decompose(builder);
    if (parts.empty())
      continue;
    Operation *part = before ? before->getNextNode() : &op->getBlock()->front();
    for (; part != op; part = part->getNextNode())
      part->walk([&](CompositeOp composite) { worklist.push_back(composite); });
    op->replaceAllUsesWith(parts);
    op->erase();
  }
}

} // namespace dg::passes
