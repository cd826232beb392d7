// SPDX-License-Identifier: Apache-2.0
// Mean and variance of a value, from ops that exist for every type: reductions and normalizations share them.
#pragma once

#include "ir/onnx/Node.h"

namespace dg::ir::onnx_import {

/// The mean over `dims`, which stay with size 1.
mlir::Value meanOf(Node &node, mlir::Value x, llvm::ArrayRef<int64_t> dims);

struct Statistics {
  mlir::Value mean, variance; ///< over the dimensions, which stay with size 1; the variance of all, not of a sample
};
Statistics statisticsOf(Node &node, mlir::Value x, llvm::ArrayRef<int64_t> dims);

/// 1 / √(variance + epsilon)
mlir::Value inverseDeviation(Node &node, mlir::Value variance, double epsilon);
/// (x - mean) / √(variance + epsilon)
mlir::Value normalized(Node &node, mlir::Value x, const Statistics &statistics, double epsilon);

} // namespace dg::ir::onnx_import
