// SPDX-License-Identifier: Apache-2.0
// The generated side of the op interfaces, and what several families share when they fill them in.
#include "ir/dialect/Dialect.h"
#include "ir/dialect/ElementTypes.h"

#include "ir/dialect/Interfaces.cpp.inc"

using namespace mlir;

namespace dg::ir {

static SmallVector<SmallVector<SmallVector<int32_t, 2>>> dimensionsOf(TypeRange types) {
  SmallVector<SmallVector<SmallVector<int32_t, 2>>> all;
  for (Type type : types)
    all.emplace_back(cast<RankedTensorType>(type).getRank());
  return all;
}

ShardingRule emptyShardingRule(Operation *op) {
  ShardingRule rule;
  rule.operands = dimensionsOf(op->getOperandTypes());
  rule.results = dimensionsOf(op->getResultTypes());
  return rule;
}

ShardingRule broadcastRule(Operation *op) {
  ShardingRule rule = emptyShardingRule(op);
  auto result = tensorOf(op->getResult(0));
  for (int64_t dim = 0; dim < result.getRank(); ++dim) {
    int32_t factor = rule.addFactor(result.getDimSize(dim));
    for (auto &dims : rule.results)
      dims[dim].push_back(factor);
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      int64_t operandDim = dim - (result.getRank() - tensorOf(operand).getRank());
      if (operandDim >= 0 && tensorOf(operand).getDimSize(operandDim) == result.getDimSize(dim))
        rule.operands[index][operandDim].push_back(factor);
    }
  }
  return rule;
}

static double bytesOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape()
             ? double(tensor.getNumElements()) * double(elementBytes(tensor.getElementType()))
             : 0;
}

double operandAndResultBytes(Operation *op) {
  double bytes = 0;
  for (Type type : op->getOperandTypes())
    bytes += bytesOf(type);
  for (Type type : op->getResultTypes())
    bytes += bytesOf(type);
  return bytes;
}

OpCost elementwiseCost(Operation *op) {
  OpCost cost;
  cost.bytes = operandAndResultBytes(op);
  for (Type type : op->getResultTypes())
    cost.flops += double(cast<RankedTensorType>(type).getNumElements());
  return cost;
}

OpCost costPerElement(Operation *op, double flops) {
  return {flops * double(tensorOf(op->getOperand(0)).getNumElements()), operandAndResultBytes(op)};
}

} // namespace dg::ir
