// SPDX-License-Identifier: Apache-2.0
// Ops that look at the order of the elements along one dimension.
#include "ir/ops/arrangement/OrderOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/ReductionSupport.h"
#include "ir/rules/ShardingRules.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;

namespace dg::ir {

/// The axis, counted from the first dimension, of an op that is deduced and verified.
template <typename Op> static int64_t axisOf(Op op) {
  return *normalizedAxis(int64_t(op.getAxis()), tensorOf(op->getOperand(0)).getRank());
}

/// Fails where the input has no such axis; the answer is the axis counted from the first dimension.
static FailureOr<int64_t> checkAxis(const Rejection &reject, int64_t given, RankedTensorType input) {
  std::optional<int64_t> axis = normalizedAxis(given, input.getRank());
  if (!axis)
    return reject("works along axis ", given, " of ", input, ", expected one from ", -input.getRank(), " to ",
                  input.getRank() - 1);
  return *axis;
}

/// NaN counts as larger than all numbers.
static bool isAbove(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

//===- ArgMaxOp and ArgMinOp -------------------------------------------------------------------------------------===//

/// Numbers of elements.
static Type indicesType(ArrayRef<int64_t> shape, RankedTensorType like) {
  return RankedTensorType::get(shape, IntegerType::get(like.getContext(), 64));
}

template <typename Adaptor> static FailureOr<Type> inferArg(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  FailureOr<int64_t> axis = checkAxis(reject, op.getAxis(), input);
  if (failed(axis))
    return failure();
  if (input.getDimSize(*axis) == 0)
    return reject("looks along axis ", *axis, " of ", input, ", expected at least one element there");
  SmallVector<int64_t> shape(input.getShape());
  if (op.getKeep())
    shape[*axis] = 1;
  else
    shape.erase(shape.begin() + *axis);
  return indicesType(shape, input);
}

template <typename Op> static ShardingRule argRule(Op op) {
  return reductionRule(op, {axisOf(op)}, op.getKeep(), /*isSum=*/false);
}

template <typename Op, typename Better>
static void evaluateArg(Op op, const HostTensor &input, HostTensor &result, Better isBetter) {
  int64_t axis = axisOf(op), stride = lineStride(input.shape, axis), count = input.shape[axis];
  auto out = result.data.begin();
  forEachLine(input.shape, axis, [&](int64_t first) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; ++i) {
      double x = input.data[first + i * stride], y = input.data[first + best * stride];
      if (isBetter(x, y) || (op.getLast() && !isBetter(y, x)))
        best = i;
    }
    *out++ = double(best);
  });
}
static bool isSmaller(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a < b; }

#define DG_ARG(Op, isBetter)                                                                                           \
  FailureOr<Type> Op::inferType(Adaptor op, const Rejection &reject) { return inferArg(op, reject); }                  \
  ShardingRule Op::getShardingRule() { return argRule(*this); }                                                        \
  OpCost Op::getCost() { return costPerElement(*this, 1); }                                                            \
  void Op::compute(HostOperands operands, HostResults results) {                                                       \
    evaluateArg(*this, operands[0], results[0], isBetter);                                                             \
  }
DG_ARG(ArgMaxOp, isAbove)
DG_ARG(ArgMinOp, isSmaller)
#undef DG_ARG

//===- CumsumOp --------------------------------------------------------------------------------------------------===//

FailureOr<Type> CumsumOp::inferType(Adaptor op, const Rejection &reject) {
  if (failed(checkAxis(reject, op.getAxis(), tensorOf(op.getInput()))))
    return failure();
  return op.getInput().getType();
}

/// An element counts in the sums after it; its gradient is the sum of theirs.
Gradients CumsumOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<CumsumOp>(builder, getLoc(), grads[0], getAxis(), getExclusive(), !getReverse())};
}

ShardingRule CumsumOp::getShardingRule() { return lineRule(*this, axisOf(*this)); }
void CumsumOp::compute(HostOperands operands, HostResults results) {
  const HostTensor &input = operands[0];
  int64_t axis = axisOf(*this), stride = lineStride(input.shape, axis), count = input.shape[axis];
  forEachLine(input.shape, axis, [&](int64_t first) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = first + (getReverse() ? count - 1 - i : i) * stride;
      double before = sum;
      sum += input.data[at];
      results[0].data[at] = getExclusive() ? before : sum;
    }
  });
}

//===- TopKOp, TopKGradOp and SortOp -----------------------------------------------------------------------------===//

FailureOr<SmallVector<Type>> TopKOp::inferTypes(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  FailureOr<int64_t> axis = checkAxis(reject, op.getAxis(), input);
  if (failed(axis))
    return failure();
  int64_t k = int64_t(op.getK()), size = input.getDimSize(*axis);
  if (k < 0 || (!ShapedType::isDynamic(size) && k > size))
    return reject("takes ", k, " elements along axis ", *axis, " of ", input, ", expected 0 to ", size);
  SmallVector<int64_t> shape(input.getShape());
  shape[*axis] = k;
  return SmallVector<Type>{RankedTensorType::get(shape, input.getElementType()), indicesType(shape, input)};
}

Gradients TopKOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  if (!grads[0])
    return SmallVector<Value>{Value()};
  int64_t size = tensorOf(getInput()).getDimSize(axisOf(*this));
  return SmallVector<Value>{create<TopKGradOp>(builder, getLoc(), grads[0], getIndices(), size, getAxis())};
}

ShardingRule TopKOp::getShardingRule() { return lineRule(*this, axisOf(*this)); }
OpCost TopKOp::getCost() {
  return costPerElement(*this, std::log2(1.0 + double(tensorOf(getInput()).getDimSize(axisOf(*this)))));
}

void TopKOp::compute(HostOperands operands, HostResults results) {
  const HostTensor &input = operands[0];
  int64_t axis = axisOf(*this), stride = lineStride(input.shape, axis), k = int64_t(getK());
  int64_t outStride = lineStride(results[0].shape, axis);
  SmallVector<int64_t> firsts;
  if (k == 0)
    return;
  forEachLine(results[0].shape, axis, [&](int64_t first) { firsts.push_back(first); });
  auto out = firsts.begin();
  std::vector<int64_t> order(input.shape[axis]);
  forEachLine(input.shape, axis, [&](int64_t first) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      double x = input.data[first + a * stride], y = input.data[first + b * stride];
      return getSmallest() ? isAbove(y, x) : isAbove(x, y);
    });
    for (int64_t i = 0; i < k; ++i) {
      results[0].data[*out + i * outStride] = input.data[first + order[i] * stride];
      results[1].data[*out + i * outStride] = double(order[i]);
    }
    ++out;
  });
}

FailureOr<Type> TopKGradOp::inferType(Adaptor op, const Rejection &reject) {
  auto grad = tensorOf(op.getGrad()), indices = tensorOf(op.getIndices());
  FailureOr<int64_t> axis = checkAxis(reject, op.getAxis(), grad);
  if (failed(axis))
    return failure();
  if (!mayBeEqual(grad.getShape(), indices.getShape()))
    return reject("has gradients ", grad, " and indices ", indices, ", expected equal shapes");
  SmallVector<int64_t> shape(grad.getShape());
  shape[*axis] = int64_t(op.getSize());
  return RankedTensorType::get(shape, grad.getElementType());
}

ShardingRule TopKGradOp::getShardingRule() { return lineRule(*this, axisOf(*this)); }
IndexBound TopKGradOp::getIndexBound(unsigned operand) { return {operand == 1 ? int64_t(getSize()) : 0}; }

LogicalResult TopKGradOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  int64_t axis = axisOf(*this), stride = lineStride(operands[0].shape, axis), k = operands[0].shape[axis];
  int64_t outStride = lineStride(results[0].shape, axis);
  SmallVector<int64_t> firsts;
  if (k == 0)
    return success();
  for (double index : operands[1].data)
    if (!(index >= 0 && index < double(getSize())))
      return emitOpError() << "found index " << index << ", expected 0 to " << getSize() - 1;
  forEachLine(results[0].shape, axis, [&](int64_t first) { firsts.push_back(first); });
  auto out = firsts.begin();
  forEachLine(operands[0].shape, axis, [&](int64_t first) {
    for (int64_t i = 0; i < k; ++i)
      results[0].data[*out + int64_t(operands[1].data[first + i * stride]) * outStride] +=
          operands[0].data[first + i * stride];
    ++out;
  });
  return success();
}

FailureOr<SmallVector<Type>> SortOp::inferTypes(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  if (failed(checkAxis(reject, op.getAxis(), input)))
    return failure();
  return SmallVector<Type>{input, indicesType(input.getShape(), input)};
}

SmallVector<Value> SortOp::decompose(OpBuilder &builder) {
  int64_t size = tensorOf(getInput()).getDimSize(axisOf(*this));
  auto sorted = create<TopKOp>(builder, getLoc(), getInput(), size, getAxis(), !getDescending());
  return {sorted.getValues(), sorted.getIndices()};
}

void SortOp::compute(HostOperands operands, HostResults results) {
  const HostTensor &input = operands[0];
  int64_t axis = axisOf(*this), stride = lineStride(input.shape, axis);
  std::vector<std::pair<double, int64_t>> line(input.shape[axis]);
  forEachLine(input.shape, axis, [&](int64_t first) {
    for (size_t i = 0; i < line.size(); ++i)
      line[i] = {input.data[first + int64_t(i) * stride], int64_t(i)};
    std::stable_sort(line.begin(), line.end(), [&](auto &a, auto &b) {
      return getDescending() ? isAbove(a.first, b.first) : isAbove(b.first, a.first);
    });
    for (size_t i = 0; i < line.size(); ++i) {
      results[0].data[first + int64_t(i) * stride] = line[i].first;
      results[1].data[first + int64_t(i) * stride] = double(line[i].second);
    }
  });
}

//===- HardmaxOp -------------------------------------------------------------------------------------------------===//

FailureOr<Type> HardmaxOp::inferType(Adaptor op, const Rejection &reject) {
  if (failed(checkAxis(reject, op.getAxis(), tensorOf(op.getInput()))))
    return failure();
  return op.getInput().getType();
}

Gradients HardmaxOp::buildGradients(OpBuilder &builder, ValueRange) {
  return SmallVector<Value>{buildZeros(builder, getLoc(), getInput())};
}
ShardingRule HardmaxOp::getShardingRule() { return lineRule(*this, axisOf(*this)); }
void HardmaxOp::compute(HostOperands operands, HostResults results) {
  const HostTensor &input = operands[0];
  int64_t axis = axisOf(*this), stride = lineStride(input.shape, axis);
  forEachLine(input.shape, axis, [&](int64_t first) {
    int64_t best = 0;
    for (int64_t i = 1; i < input.shape[axis]; ++i)
      if (isAbove(input.data[first + i * stride], input.data[first + best * stride]))
        best = i;
    results[0].data[first + best * stride] = 1;
  });
}

} // namespace dg::ir

#define DG_OPS "ir/ops/arrangement/OrderOps.cpp.inc"
#define DG_ADD_OPS addOrderOps
#include "ir/ops/Family.inc"
