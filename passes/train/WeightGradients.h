// SPDX-License-Identifier: Apache-2.0
// The mark between --dg-mark-weight-gradients and --dg-split-stages, which stand next to each other: no pass between
// them could drop it.
#pragma once

#include "mlir/IR/Operation.h"

namespace dg::passes {

inline constexpr llvm::StringLiteral weightGradientName = "dg.weight_gradient";

/// Whether the op may wait until the gradients of its stage's inputs were sent on.
inline bool isWeightGradient(mlir::Operation *op) { return op->hasAttr(weightGradientName); }

} // namespace dg::passes
