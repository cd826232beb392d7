// SPDX-License-Identifier: Apache-2.0
// The state by which the loss is multiplied before its gradient is taken, so that gradients in f16 do not vanish.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace dg::passes {

/// Made by Differentiate where it is asked to scale the loss; AddOptimizer divides by it and adapts it.
inline constexpr llvm::StringLiteral lossScaleName = "loss_scale";

} // namespace dg::passes
