// SPDX-License-Identifier: Apache-2.0
// Takes parameters out of training by name, so that a model that was trained before can be fine-tuned in its last
// layers.
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"
#include "passes/train/NamePattern.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_FREEZEPARAMETERS
#include "passes/Passes.h.inc"

namespace {

struct FreezeParametersPass : impl::FreezeParametersBase<FreezeParametersPass> {
  using FreezeParametersBase::FreezeParametersBase;

  void runOnOperation() override {
    for (const std::string &pattern : patterns) {
      int64_t numFrozen = 0;
      getOperation().walk([&](ir::ParameterOp parameter) {
        if (parameter.getState() || !matchesPattern(parameter.getParam(), pattern))
          return;
        parameter.setFrozen(true);
        ++numFrozen;
      });
      if (numFrozen == 0) {
        getOperation().emitError() << "has no parameter that '" << pattern
                                   << "' names, expected a pattern such as 'features.*' that matches the parameters to "
                                      "freeze";
        return signalPassFailure();
      }
    }
  }
};

} // namespace
} // namespace dg::passes
