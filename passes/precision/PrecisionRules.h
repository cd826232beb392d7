// SPDX-License-Identifier: Apache-2.0
// Which ops gain from 16 bits and which must not lose them: one table for every op that a model is written in.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringRef.h"

namespace dg::passes {

enum class PrecisionClass {
  low,     ///< operands are cast to 16 bits, the result has them
  narrows, ///< computed as it is, its result is cast to 16 bits
  follows, ///< in 16 bits where an activation that it reads has them
  rows,    ///< follows, but its parameters stay f32: a norm whose arithmetic is f32 inside
  kept,    ///< computed in the type that the model was written in
};

struct PrecisionRule {
  PrecisionClass kind;
  llvm::StringRef why; ///< completes "linear is in bf16: …"
};

/// "f32", "bf16" or "f16"; null: none of them.
mlir::Type parsePrecision(mlir::MLIRContext *context, llvm::StringRef name);

/// The rule of an op, by its name without the dialect. What no list names is kept.
PrecisionRule precisionRuleOf(llvm::StringRef op);

} // namespace dg::passes
