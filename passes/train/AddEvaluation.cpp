// SPDX-License-Identifier: Apache-2.0
// Copies @loss to @eval before anything is differentiated, so that a job can evaluate what it trains.
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_ADDEVALUATION
#include "passes/Passes.h.inc"

namespace {

struct AddEvaluationPass : impl::AddEvaluationBase<AddEvaluationPass> {
  void runOnOperation() override {
    auto loss = getOperation().lookupSymbol<ir::GraphOp>("loss");
    if (!loss || getOperation().lookupSymbol("eval"))
      return;
    auto eval = cast<ir::GraphOp>(loss->clone());
    eval.setSymName("eval");
    getOperation().getBody()->push_back(eval);
  }
};

} // namespace
} // namespace dg::passes
