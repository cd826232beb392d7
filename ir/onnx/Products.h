// SPDX-License-Identifier: Apache-2.0
// Products that several families of operators make.
#pragma once

#include "ir/onnx/Node.h"

namespace dg::ir::onnx_import {

/// numpy.matmul: vectors, matrices and batches of them, broadcast.
mlir::Value matrixProduct(Node &node, mlir::Value a, mlir::Value b);
/// The node's convolution of `x` with `weight` and the attributes of Conv; `bias` may be null.
mlir::Value convolution(Node &node, mlir::Value x, mlir::Value weight, mlir::Value bias);

} // namespace dg::ir::onnx_import
