// SPDX-License-Identifier: Apache-2.0
// Takes parameters and running statistics out of training by name, so that a model that was trained before can be
// fine-tuned in its last layers.
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"
#include "passes/UsageError.h"
#include "passes/train/NamePattern.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_FREEZEPARAMETERS
#include "passes/Passes.h.inc"

namespace {

struct FreezeParametersPass : impl::FreezeParametersBase<FreezeParametersPass> {
  using FreezeParametersBase::FreezeParametersBase;

  void runOnOperation() override {
    for (const std::string &pattern : patterns)
      if (!freeze(pattern, /*isState=*/false)) {
        emitUsageError(getOperation())
            << "has no parameter that '" << pattern
            << "' names, expected a pattern such as 'features.*' that matches the parameters to "
               "freeze";
        return signalPassFailure();
      }
    for (const std::string &pattern : statistics)
      if (!freeze(pattern, /*isState=*/true)) {
        emitUsageError(getOperation())
            << "has no running statistics that '" << pattern
            << "' names, expected a pattern such as 'bn.*' that matches those of a batch norm";
        return signalPassFailure();
      }
    if (!patterns.empty() && !isAnyTrained()) {
      emitUsageError(getOperation()) << "has no parameter left to train: --freeze names them all";
      return signalPassFailure();
    }
  }

private:
  bool isAnyTrained() {
    return getOperation()
        .walk([](ir::ParameterOp parameter) {
          const bool isTrained = !parameter.getState() && !parameter.getFrozen();
          return isTrained ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Whether there was one.
  bool freeze(StringRef pattern, bool isState) {
    bool isNamed = false;
    getOperation().walk([&](ir::ParameterOp parameter) {
      if (parameter.getState() != isState || !matchesPattern(parameter.getParam(), pattern))
        return;
      parameter.setFrozen(true);
      isNamed = true;
    });
    return isNamed;
  }
};

} // namespace
} // namespace dg::passes
