// SPDX-License-Identifier: Apache-2.0
// Ops that move or add up elements without changing them.
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/ReductionSupport.h"
#include "ir/rules/ShardingRules.h"
#include "ir/rules/TypeInference.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace dg::ir {

//===- ReshapeOp -------------------------------------------------------------------------------------------------===//

FailureOr<Type> ReshapeOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  SmallVector<int64_t> shape(op.getShape());
  auto fail = [&](auto &&...expected) {
    return reject("gives ", input, " the shape ", op.getShapeAttr(), ", expected ", expected...);
  };
  // A `?` that the shape keeps cancels out of the count of elements; any other `?` leaves the -1 unknown.
  int64_t numInput = 1, numResult = 1, numUnknown = 0;
  std::optional<size_t> deduced;
  for (int64_t size : input.getShape())
    ShapedType::isDynamic(size) ? ++numUnknown : numInput *= size;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] == -1) {
      if (deduced)
        return fail("at most one -1");
      deduced = dim;
      continue;
    }
    if (shape[dim] == 0) {
      if (int64_t(dim) >= input.getRank())
        return fail("0 only where the input has a dimension to keep");
      shape[dim] = input.getDimSize(dim);
      if (ShapedType::isDynamic(shape[dim])) {
        --numUnknown;
        continue;
      }
    }
    if (shape[dim] < 0)
      return fail("sizes above 0, 0 to keep, or one -1 to deduce");
    if (llvm::MulOverflow(numResult, shape[dim], numResult))
      return fail("one whose elements can be counted");
  }
  if (deduced) {
    if (numUnknown == 0 && (numResult == 0 || numInput % numResult != 0))
      return fail("a shape whose sizes divide the ", numInput, " elements of the input");
    shape[*deduced] = numUnknown == 0 ? numInput / numResult : ShapedType::kDynamic;
  } else if (numUnknown == 0 && numInput != numResult) {
    return fail("one of ", numInput, " elements, as the input has, found ", numResult);
  }
  return RankedTensorType::get(shape, input.getElementType());
}

Gradients ReshapeOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{buildReshape(builder, getLoc(), grads[0], tensorOf(getInput()).getShape())};
}

/// Both shapes count the same elements, so while the dimensions before the present ones are used up, a common divisor g
/// of what is left of the two present dimensions is the same index in both: (place in the tensor) / (elements left /
/// g). What has no common divisor stays whole until the two products meet again.
ShardingRule ReshapeOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  ArrayRef<int64_t> from = tensorOf(getInput()).getShape(), to = tensorOf(getResult()).getShape();
  if (llvm::is_contained(from, 0)) // nothing to cut, and no divisor is left of nothing
    return rule;
  size_t i = 0, j = 0;
  int64_t leftFrom = from.empty() ? 1 : from[0], leftTo = to.empty() ? 1 : to[0];
  auto nextFrom = [&] { return ++i < from.size() ? from[i] : 1; };
  auto nextTo = [&] { return ++j < to.size() ? to[j] : 1; };
  while (i < from.size() && j < to.size()) {
    int64_t common = std::gcd(leftFrom, leftTo);
    if (common > 1 || (from[i] == 1 && to[j] == 1)) {
      int32_t factor = rule.addFactor(common);
      rule.operands[0][i].push_back(factor);
      rule.results[0][j].push_back(factor);
      leftFrom /= common;
      leftTo /= common;
    } else if (leftFrom > 1 && leftTo > 1) {
      while (leftFrom != leftTo && i < from.size() && j < to.size()) {
        if (leftFrom < leftTo)
          leftFrom *= nextFrom();
        else
          leftTo *= nextTo();
      }
      leftFrom = leftTo = 1;
    }
    bool isUsedUp = leftFrom == 1, isFull = leftTo == 1;
    if (isUsedUp)
      leftFrom = nextFrom();
    if (isFull)
      leftTo = nextTo();
  }
  return rule;
}

void ReshapeOp::localize(TypeRange resultTypes) { setShape(cast<RankedTensorType>(resultTypes[0]).getShape()); }

/// The same memory under another name.
OpCost ReshapeOp::getCost() { return {}; }

void ReshapeOp::compute(HostOperands operands, HostResults results) { results[0].data = operands[0].data; }

//===- TransposeOp -----------------------------------------------------------------------------------------------===//

FailureOr<Type> TransposeOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  auto isInRange = [&](int64_t dim) { return dim >= 0 && dim < input.getRank(); };
  if (int64_t(op.getPermutation().size()) != input.getRank() || !llvm::all_of(op.getPermutation(), isInRange) ||
      !isPermutationVector(op.getPermutation()))
    return reject("permutes ", input, " by ", op.getPermutationAttr(), ", expected each of 0 to ", input.getRank() - 1,
                  " once");
  SmallVector<int64_t> shape;
  for (int64_t dim : op.getPermutation())
    shape.push_back(input.getDimSize(dim));
  return RankedTensorType::get(shape, input.getElementType());
}

Gradients TransposeOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{
      create<TransposeOp>(builder, getLoc(), grads[0], invertPermutationVector(getPermutation()))};
}

ShardingRule TransposeOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  for (auto [dim, inputDim] : llvm::enumerate(getPermutation())) {
    int32_t factor = rule.addFactor(tensorOf(getResult()).getDimSize(dim));
    rule.results[0][dim].push_back(factor);
    rule.operands[0][inputDim].push_back(factor);
  }
  return rule;
}

void TransposeOp::compute(HostOperands operands, HostResults results) {
  SmallVector<int64_t> own = stridesOf(operands[0].shape), strides;
  for (int64_t dim : getPermutation())
    strides.push_back(own[dim]);
  auto out = results[0].data.begin();
  forEachIndex(results[0].shape, {strides}, [&](ArrayRef<int64_t> at) { *out++ = operands[0].data[at[0]]; });
}

//===- ExpandOp --------------------------------------------------------------------------------------------------===//

FailureOr<Type> ExpandOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  auto joined = broadcastShapes(op.getShape(), input.getShape());
  if (!joined || ArrayRef<int64_t>(*joined) != op.getShape())
    return reject("expands ", input, " to ", op.getShapeAttr(),
                  ", expected sizes that are equal, or 1 in the input, counted from the last dimension");
  return RankedTensorType::get(op.getShape(), input.getElementType());
}

Gradients ExpandOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{sumToShape(builder, getLoc(), grads[0], tensorOf(getInput()))};
}

ShardingRule ExpandOp::getShardingRule() { return broadcastRule(*this); }

void ExpandOp::localize(TypeRange resultTypes) { setShape(cast<RankedTensorType>(resultTypes[0]).getShape()); }

void ExpandOp::compute(HostOperands operands, HostResults results) {
  auto out = results[0].data.begin();
  forEachIndex(results[0].shape, {broadcastStrides(operands[0].shape, results[0].shape)},
               [&](ArrayRef<int64_t> at) { *out++ = operands[0].data[at[0]]; });
}

//===- ReduceSumOp -----------------------------------------------------------------------------------------------===//

FailureOr<Type> ReduceSumOp::inferType(Adaptor op, const Rejection &reject) { return inferReduction(op, reject); }

Gradients ReduceSumOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  auto input = tensorOf(getInput());
  Value kept = buildReshape(builder, getLoc(), grads[0], keptShape(input.getShape(), getDims()));
  return SmallVector<Value>{create<ExpandOp>(builder, getLoc(), kept, input.getShape())};
}

ShardingRule ReduceSumOp::getShardingRule() { return reductionRule(*this, getDims(), getKeep(), /*isSum=*/true); }

void ReduceSumOp::compute(HostOperands operands, HostResults results) {
  foldInto(operands[0], getDims(), results[0], [](double sum, double element) { return sum + element; });
}

} // namespace dg::ir

#define DG_OPS "ir/ops/arrangement/ShapeOps.cpp.inc"
#define DG_ADD_OPS addShapeOps
#include "ir/ops/Family.inc"
