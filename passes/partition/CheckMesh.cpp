// SPDX-License-Identifier: Apache-2.0
// Says early, in the model's own words, what a mesh asks that the model cannot give.
#include "ir/dialect/Dialect.h"
#include "passes/Passes.h"
#include "passes/partition/Decisions.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_CHECKMESH
#include "passes/Passes.h.inc"

namespace {

struct CheckMeshPass : impl::CheckMeshBase<CheckMeshPass> {
  using CheckMeshBase::CheckMeshBase;

  void runOnOperation() override {
    const int64_t tensor = getMesh(getOperation()).sizeOf("tensor");
    WalkResult result = getOperation().walk([&](ir::HeadsOp op) {
      int64_t heads = op.getNumHeads();
      if (heads % tensor == 0)
        return WalkResult::advance();
      op->emitOpError() << "has " << heads << " heads, which do not divide over tensor=" << tensor
                        << ": choose a tensor axis that divides the heads";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
} // namespace dg::passes
