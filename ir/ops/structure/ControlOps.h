// SPDX-License-Identifier: Apache-2.0
// The ops of ControlOps.td in C++.
#pragma once

#include "ir/dialect/Dialect.h"

#define GET_OP_CLASSES
#include "ir/ops/structure/ControlOps.h.inc"

namespace dg::ir {

/// A scan over `scanned`, whose body is built by `build` from its arguments: carried values, slices, whole values. What
/// `build` returns is what the body returns.
mlir::FailureOr<ScanOp> buildScan(
    mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange carried, mlir::ValueRange scanned,
    mlir::ValueRange whole, unsigned numSums, bool isReverse,
    llvm::function_ref<mlir::FailureOr<llvm::SmallVector<mlir::Value>>(mlir::OpBuilder &, mlir::ValueRange)> build);

} // namespace dg::ir
