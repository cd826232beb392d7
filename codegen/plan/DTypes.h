// SPDX-License-Identifier: Apache-2.0
// The element types of the dialect as plans name them, in both directions.
#pragma once

#include "runtime/plan/Plan.h"

#include "mlir/IR/Types.h"

namespace dg::codegen {

/// Of an element, or of a tensor's elements.
plan::DType dtypeOf(mlir::Type type);
mlir::Type typeOf(mlir::MLIRContext *context, plan::DType type);

} // namespace dg::codegen
