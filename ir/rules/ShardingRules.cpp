// SPDX-License-Identifier: Apache-2.0
// Sharding rules that several families share.
#include "ir/rules/ShardingRules.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/LogicOps.h"

using namespace mlir;

namespace dg::ir {

ShardingRule leadingRule(Operation *op, int64_t numDims, ArrayRef<unsigned> operands, ArrayRef<unsigned> results) {
  ShardingRule rule = emptyShardingRule(op);
  for (int64_t dim = 0; dim < numDims; ++dim) {
    int32_t factor = rule.addFactor(tensorOf(op->getOperand(0)).getDimSize(dim));
    for (unsigned index : operands)
      rule.operands[index][dim].push_back(factor);
    for (unsigned index : results)
      rule.results[index][dim].push_back(factor);
  }
  return rule;
}

ShardingRule lineRule(Operation *op, int64_t axis) {
  ShardingRule rule = emptyShardingRule(op);
  auto result = tensorOf(op->getResult(0));
  for (int64_t dim = 0; dim < result.getRank(); ++dim) {
    if (dim == axis)
      continue;
    int32_t factor = rule.addFactor(result.getDimSize(dim));
    for (auto *tensors : {&rule.operands, &rule.results})
      for (auto &dims : *tensors)
        dims[dim].push_back(factor);
  }
  return rule;
}

bool isLinear(Operation *op) {
  if (auto cast = dyn_cast<CastOp>(op))
    return isa<FloatType>(cast.getTo()) && isa<FloatType>(tensorOf(cast.getInput()).getElementType());
  return isa<AddOp, SubOp, ScaleOp, ReshapeOp, TransposeOp, ReduceSumOp, ExpandOp>(op);
}

} // namespace dg::ir
