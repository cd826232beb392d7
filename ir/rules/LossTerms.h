// SPDX-License-Identifier: Apache-2.0
// What is linear in the terms of a loss: only so is a mean over samples a sum over ranks and micro-batches.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace dg::ir {

/// An op that adds up all elements along some dimensions.
struct Summing {
  llvm::ArrayRef<int64_t> dims;
  bool isMean = false; ///< and divides by their number
};

/// Of the op, if it is such a one.
std::optional<Summing> summingOf(mlir::Operation *op);

/// Whether the op is linear in the operands together for which `varies` is set, where the others are fixed; ones that
/// are added to them vary like a part of them (see isAddition).
bool isLinearIn(mlir::Operation *op, llvm::ArrayRef<bool> varies);

/// Whether the result is a sum with the operands as its terms: one that is fixed is a term like the others.
bool isAddition(mlir::Operation *op);

/// What of the prediction of this loss is hardly meant, as probabilities where it takes logits; empty: nothing.
std::string doubtOf(mlir::Operation *loss);

} // namespace dg::ir
