// SPDX-License-Identifier: Apache-2.0
// What a pass does with each class of precision that ops say of themselves.
#pragma once

#include "ir/dialect/Dialect.h"

namespace dg::passes {

enum class Casting {
  low,     ///< operands are cast to 16 bits, the result has them
  narrows, ///< computed as it is, its result is cast to 16 bits
  follows, ///< in 16 bits where an activation that it reads has them
  rows,    ///< follows, but its parameters stay f32
  kept,    ///< computed in the type that the model was written in
};

struct PrecisionRule {
  Casting kind;
  llvm::StringRef why; ///< completes "linear is in bf16: …"
};

/// "f32", "bf16" or "f16"; null: none of them.
mlir::Type parsePrecision(mlir::MLIRContext *context, llvm::StringRef name);

/// The rule of an op's class; what has no class is kept.
PrecisionRule precisionRuleOf(mlir::Operation *op);

} // namespace dg::passes
