// SPDX-License-Identifier: Apache-2.0
// Gradients of ops that are written for speed and equal a graph of others: the graph's own gradient is theirs.
#pragma once

#include "ir/dialect/Dialect.h"

namespace dg::ir {

/// The gradients of `op`'s operands, where `build` makes ops at the builder's place that compute its results. What of
/// them nothing needs is left to the next CSE. Fails where one of them has no gradient.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
differentiateParts(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange grads,
                   llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &)> build);

} // namespace dg::ir
