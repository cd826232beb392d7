// SPDX-License-Identifier: Apache-2.0
// Small graphs that gradients, decompositions and losses build again and again.
#pragma once

#include "ir/dialect/Dialect.h"

namespace dg::ir {

/// `value` under another shape of as many elements; `value` itself where the shape is the same.
mlir::Value buildReshape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                         llvm::ArrayRef<int64_t> shape);
/// `value` times a number.
mlir::Value buildScale(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, double factor);
/// A constant tensor of this type with the same number everywhere.
mlir::Value buildFilled(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type, double number);
/// Zeros of the type of `like`.
mlir::Value buildZeros(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value like);
/// The sum of `value` over the dimensions along which numpy repeats a tensor of type `target`: broadcasting, backwards.
mlir::Value sumToShape(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::RankedTensorType target);

} // namespace dg::ir
