// SPDX-License-Identifier: Apache-2.0
// What lies in memory behind a value: how many bytes, under which other names, and whether it outlives a step.
#pragma once

#include "ir/dialect/ElementTypes.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/ops/structure/LiteralOps.h"

namespace dg::passes {

/// The value whose memory this is: a view is another name of its operand.
inline mlir::Value memoryOf(mlir::Value value) {
  while (mlir::Operation *op = value.getDefiningOp()) {
    if (!ir::isView(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Parameters and constants: there before a step begins, so that every chunk reads them where it needs them.
inline bool isMemoryOfTheJob(mlir::Operation *op) {
  return mlir::isa<ir::ParameterOp, ir::ConstantOp, ir::LiteralOp>(op);
}

inline int64_t bytesOf(mlir::Value value) {
  mlir::RankedTensorType type = ir::tensorOf(value);
  return type.getNumElements() * ir::elementBytes(type.getElementType());
}

} // namespace dg::passes
