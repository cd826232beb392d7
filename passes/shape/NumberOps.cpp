// SPDX-License-Identifier: Apache-2.0
// Numbers the ops that the author wrote. Whatever is made of one of them later has its number, so that the programs of
// a job agree on stages although each takes ops apart in its own way.
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_NUMBEROPS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct NumberOpsPass : impl::NumberOpsBase<NumberOpsPass> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>()) {
      int64_t origin = 0;
      for (Operation &op : graph.getBody().front())
        setPlace(&op, withOrigin(getPlace(&op), origin++, Phase::forward));
    }
  }
};

} // namespace
} // namespace dg::passes
