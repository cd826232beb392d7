// SPDX-License-Identifier: Apache-2.0
// Normalization by statistics over any dimensions, rows weighed: batch norm and what it is made of.
#include "ir/ops/reduction/StatisticsOps.h"
#include "ir/dialect/Expression.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/PartsGradient.h"
#include "ir/rules/ReductionSupport.h"
#include "ir/rules/ShardingRules.h"
#include "ir/rules/TypeInference.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

//===- What sums share -------------------------------------------------------------------------------------------===//

/// True where numpy repeats the operand along dimensions of size 1, and never otherwise, to get the shape.
static bool repeatsTo(RankedTensorType operand, RankedTensorType whole) {
  if (operand.getRank() > whole.getRank() || operand.getElementType() != whole.getElementType())
    return false;
  for (int64_t dim = 1; dim <= operand.getRank(); ++dim)
    if (operand.getShape().end()[-dim] != 1 &&
        !mayBeEqual(operand.getShape().end()[-dim], whole.getShape().end()[-dim]))
      return false;
  return true;
}

/// Dimensions of equal place and size move together over all operands; results lack the factors that are summed over.
/// `whole` is the operand that has every dimension.
static ShardingRule summingRule(Operation *op, Value whole) {
  ShardingRule rule = emptyShardingRule(op);
  auto type = tensorOf(whole);
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    int32_t factor = rule.addFactor(type.getDimSize(dim));
    auto place = [&](Value value, auto &dims) {
      int64_t own = dim - (type.getRank() - tensorOf(value).getRank());
      if (own >= 0 && tensorOf(value).getDimSize(own) == type.getDimSize(dim))
        dims[own].push_back(factor);
    };
    for (auto [index, operand] : llvm::enumerate(op->getOperands()))
      place(operand, rule.operands[index]);
    for (auto [index, result] : llvm::enumerate(op->getResults()))
      place(result, rule.results[index]);
  }
  return rule;
}

/// Calls `visit(offsets)` for each element of `whole`: the places in the operands and, last, in the sums.
template <typename Visit>
static void forEachSummand(const HostTensor &whole, ArrayRef<HostTensor> operands, const HostTensor &sum, Visit visit) {
  SmallVector<SmallVector<int64_t>> strides;
  for (const HostTensor &operand : operands)
    strides.push_back(broadcastStrides(operand.shape, whole.shape));
  strides.push_back(broadcastStrides(sum.shape, whole.shape));
  forEachIndex(whole.shape, strides, visit);
}

//===- MomentsOp -------------------------------------------------------------------------------------------------===//

FailureOr<SmallVector<Type>> MomentsOp::inferTypes(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  for (Value operand : {op.getWeight(), op.getShift()})
    if (!repeatsTo(tensorOf(operand), input))
      return reject("has input ", input, " and operand ", operand.getType(),
                    ", expected weight and shift of equal sizes, or 1, counted from the last dimension");
  SmallVector<int64_t> shape(input.getShape());
  if (!areDimsOf(op.getDims(), input.getRank()))
    return reject("sums ", input, " over dimensions ", op.getDimsAttr(), ", expected different numbers from 0 to ",
                  input.getRank() - 1);
  for (int64_t dim : op.getDims())
    shape[dim] = 1;
  return SmallVector<Type>(2, RankedTensorType::get(shape, input.getElementType()));
}

/// With d = x - s: dx = scale · w (g₁ + 2 g₂ d), ds = -Σ dx, dw = scale · Σ (g₁ d + g₂ d²).
Gradients MomentsOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Location loc = getLoc();
  auto add = [&](Value a, Value b) -> Value {
    return a && b ? create<AddOp>(builder, loc, a, b).getResult() : a ? a : b;
  };
  auto mul = [&](Value a, Value b) -> Value { return create<MulOp>(builder, loc, a, b); };
  double scale = getScale().convertToDouble();
  Value first = grads[0] ? buildScale(builder, loc, grads[0], scale) : Value();
  Value second = grads[1] ? buildScale(builder, loc, grads[1], 2 * scale) : Value();
  Value distance = create<SubOp>(builder, loc, getInput(), getShift());
  Value slope = add(second ? mul(distance, second) : Value(), first);
  if (slope.getType() != getInput().getType())
    slope = create<ExpandOp>(builder, loc, slope, tensorOf(getInput()).getShape());
  Value input = mul(slope, getWeight());
  Value half = second ? mul(distance, buildScale(builder, loc, second, 0.5)) : Value();
  Value weight = mul(distance, add(half, first));
  return SmallVector<Value>{input, sumToShape(builder, loc, weight, tensorOf(getWeight())),
                            buildScale(builder, loc, sumToShape(builder, loc, input, tensorOf(getShift())), -1)};
}

ShardingRule MomentsOp::getShardingRule() { return summingRule(*this, getInput()); }

OpCost MomentsOp::getCost() { return {5.0 * tensorOf(getInput()).getNumElements(), operandAndResultBytes(*this)}; }

void MomentsOp::compute(HostOperands operands, HostResults results) {
  double scale = getScale().convertToDouble();
  forEachSummand(operands[0], operands, results[0], [&](ArrayRef<int64_t> at) {
    double distance = operands[0].data[at[0]] - operands[2].data[at[2]], weight = scale * operands[1].data[at[1]];
    results[0].data[at[3]] += weight * distance;
    results[1].data[at[3]] += weight * distance * distance;
  });
}

//===- NormalizeOp -----------------------------------------------------------------------------------------------===//

FailureOr<Type> NormalizeOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), mean = tensorOf(op.getMean());
  for (Value operand : {op.getMean(), op.getScale(), op.getBias()})
    if (!repeatsTo(tensorOf(operand), input) || tensorOf(operand).getRank() != input.getRank() ||
        !mayBeEqual(tensorOf(operand).getShape(), mean.getShape()))
      return reject("has input ", input, " and operand ", operand.getType(),
                    ", expected mean, scale and bias of one shape with the input's sizes, or 1");
  return input;
}

Gradients NormalizeOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Location loc = getLoc();
  auto sums = create<NormalizeSumsOp>(builder, loc, grads[0], getInput(), getMean());
  Value mean = create<MulOp>(builder, loc, sums.getFirst(), getScale());
  return SmallVector<Value>{create<MulOp>(builder, loc, grads[0], getScale()), buildScale(builder, loc, mean, -1),
                            sums.getSecond(), sums.getFirst()};
}

double NormalizeOp::evaluateScalar(ArrayRef<double> x) { return (x[0] - x[1]) * x[2] + x[3]; }

void NormalizeOp::compute(HostOperands operands, HostResults results) {
  auto out = results[0].data.begin();
  forEachSummand(operands[0], operands, operands[1], [&](ArrayRef<int64_t> at) {
    *out++ = evaluateScalar(
        {operands[0].data[at[0]], operands[1].data[at[1]], operands[2].data[at[2]], operands[3].data[at[3]]});
  });
}

//===- NormalizeSumsOp -------------------------------------------------------------------------------------------===//

FailureOr<SmallVector<Type>> NormalizeSumsOp::inferTypes(Adaptor op, const Rejection &reject) {
  auto grad = tensorOf(op.getGrad()), input = tensorOf(op.getInput()), mean = tensorOf(op.getMean());
  if (!mayBeEqual(grad.getShape(), input.getShape()) || grad.getElementType() != input.getElementType() ||
      !repeatsTo(mean, input) || mean.getRank() != input.getRank())
    return reject("has gradient ", grad, ", input ", input, " and mean ", mean,
                  ", expected equal types, and a mean with the input's sizes, or 1");
  return SmallVector<Type>(2, mean);
}

/// The same sums from ops that have gradients.
Gradients NormalizeSumsOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return differentiateParts(builder, *this, grads, [&](OpBuilder &parts) -> SmallVector<Value> {
    Expression dy(parts, getLoc(), getGrad()), x(parts, getLoc(), getInput()), mean(parts, getLoc(), getMean());
    auto sum = [&](Value value) { return sumToShape(parts, getLoc(), value, tensorOf(getMean())); };
    return {sum(dy), sum(dy * (x - mean))};
  });
}

ShardingRule NormalizeSumsOp::getShardingRule() { return summingRule(*this, getInput()); }

OpCost NormalizeSumsOp::getCost() {
  return {4.0 * tensorOf(getInput()).getNumElements(), operandAndResultBytes(*this)};
}

void NormalizeSumsOp::compute(HostOperands operands, HostResults results) {
  forEachSummand(operands[1], operands, results[0], [&](ArrayRef<int64_t> at) {
    double grad = operands[0].data[at[0]];
    results[0].data[at[3]] += grad;
    results[1].data[at[3]] += grad * (operands[1].data[at[1]] - operands[2].data[at[2]]);
  });
}

//===- BatchNormOp -----------------------------------------------------------------------------------------------===//

FailureOr<Type> BatchNormOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  if (input.getRank() < 2 || !isa<FloatType>(input.getElementType()))
    return reject("has input ", input, ", expected floats (dg.cast makes them) in [n, c, …]");
  for (Value operand : op.getOperands().drop_front()) {
    auto type = tensorOf(operand);
    if (type.getRank() != 1 || !mayBeEqual(type.getDimSize(0), input.getDimSize(1)) ||
        type.getElementType() != input.getElementType())
      return reject("has input ", input, " and operand ", type,
                    ", expected weight, bias, mean and variance with one element for each of the ", input.getDimSize(1),
                    " channels (dimension 1)");
  }
  return input;
}

/// The shape in which a value for each channel is repeated over the input: [1, c, 1, …].
static SmallVector<int64_t> channelShape(RankedTensorType input) {
  SmallVector<int64_t> shape(input.getRank(), 1);
  shape[1] = input.getDimSize(1);
  return shape;
}

/// 1 / √(variance + ε).
static Value buildInverseDeviation(OpBuilder &builder, Location loc, Value variance, double epsilon) {
  return (Expression(builder, loc, variance) + epsilon).apply<RsqrtOp>();
}

SmallVector<Value> BatchNormOp::decompose(OpBuilder &builder) {
  SmallVector<int64_t> shape = channelShape(tensorOf(getInput()));
  auto spread = [&](Value value) { return buildReshape(builder, getLoc(), value, shape); };
  Value inverse = buildInverseDeviation(builder, getLoc(), spread(getVariance()), getEpsilon().convertToDouble());
  Value scale = create<MulOp>(builder, getLoc(), inverse, spread(getWeight()));
  return {create<NormalizeOp>(builder, getLoc(), getInput(), spread(getMean()), scale, spread(getBias()))};
}

/// The running mean is the shift of the sums: where it has come near the mean, nothing cancels.
FailureOr<SmallVector<Value>> BatchNormOp::buildTraining(OpBuilder &builder, TrainingScope &scope) {
  for (Value running : {getMean(), getVariance()}) {
    auto parameter = running.getDefiningOp<ParameterOp>();
    if (!parameter || !parameter.getState())
      return emitOpError() << "is trained with " << (running == getMean() ? "a mean" : "a variance")
                           << " that is no state, expected a dg.parameter with {state}, in which the running one is "
                              "kept";
  }
  Location loc = getLoc();
  auto input = tensorOf(getInput());
  SmallVector<int64_t> shape = channelShape(input), rowShape(input.getRank(), 1), dims;
  rowShape[0] = input.getDimSize(0);
  int64_t positions = 1;
  for (int64_t dim = 0; dim < input.getRank(); ++dim) {
    if (dim != 1)
      dims.push_back(dim);
    if (dim > 1)
      positions *= input.getDimSize(dim);
  }
  auto spread = [&](Value value) { return buildReshape(builder, loc, value, shape); };
  auto mul = [&](Value a, Value b) -> Value { return create<MulOp>(builder, loc, a, b); };

  Value shift = spread(getMean()), rows = buildReshape(builder, loc, scope.share, rowShape);
  auto moments = create<MomentsOp>(builder, loc, getInput(), rows, shift, dims, APFloat(1.0 / double(positions)));
  Value mean = create<AddOp>(builder, loc, moments.getFirst(), shift);
  Value square = mul(moments.getFirst(), moments.getFirst());
  Value variance = create<SubOp>(builder, loc, moments.getSecond(), square);
  Value inverse = buildInverseDeviation(builder, loc, variance, getEpsilon().convertToDouble());
  Value scale = mul(inverse, spread(getWeight()));
  Value result = create<NormalizeOp>(builder, loc, getInput(), mean, scale, spread(getBias()));

  // n / (n - 1) for n = samples · positions; the smallest number keeps a single element from dividing by 0.
  auto scalar = RankedTensorType::get({}, input.getElementType());
  auto number = [&](double value) -> Value {
    return create<ConstantOp>(builder, loc, scalar, builder.getF64FloatAttr(value), TypeAttr::get(scalar));
  };
  Value rest =
      create<SubOp>(builder, loc, number(1), buildScale(builder, loc, scope.inverseCount, 1.0 / double(positions)));
  rest = create<AddOp>(builder, loc, rest, number(1e-30));
  Value unbiased = mul(create<DivOp>(builder, loc, variance, rest), scope.total);
  double rate = getMomentum().convertToDouble();
  auto flat = [&](Value value) { return buildReshape(builder, loc, value, {input.getDimSize(1)}); };
  scope.updates.push_back({getMean(), flat(mul(mean, scope.total)), rate});
  scope.updates.push_back({getVariance(), flat(unbiased), rate});
  return SmallVector<Value>{result};
}

void BatchNormOp::compute(HostOperands operands, HostResults results) {
  const HostTensor &input = operands[0];
  int64_t channels = input.shape[1], positions = 1;
  for (size_t dim = 2; dim < input.shape.size(); ++dim)
    positions *= input.shape[dim];
  for (size_t i = 0; i < input.data.size(); ++i) {
    size_t channel = i / size_t(positions) % size_t(channels);
    double deviation = std::sqrt(operands[4].data[channel] + getEpsilon().convertToDouble());
    results[0].data[i] =
        (input.data[i] - operands[3].data[channel]) / deviation * operands[1].data[channel] + operands[2].data[channel];
  }
}

} // namespace dg::ir

#define DG_OPS "ir/ops/reduction/StatisticsOps.cpp.inc"
#define DG_ADD_OPS addStatisticsOps
#include "ir/ops/Family.inc"
