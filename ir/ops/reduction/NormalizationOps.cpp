// SPDX-License-Identifier: Apache-2.0
// Softmax and layer norm: ops that look at the whole last dimension of each row.
#include "ir/ops/reduction/NormalizationOps.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/Expression.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/PartsGradient.h"
#include "ir/rules/ReductionSupport.h"
#include "ir/rules/ShardingRules.h"
#include "ir/rules/TypeInference.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace dg::ir {

using Gradients = FailureOr<SmallVector<Value>>;

/// Operands of one type and at least one dimension; the result is like them.
template <typename Op>
static LogicalResult inferRowwise(MLIRContext *context, std::optional<Location> location, ValueRange operands,
                                  SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, operands, 1, inferred))
    return success();
  auto type = tensorOf(operands[0]);
  if (type.getRank() < 1 || !isa<FloatType>(type.getElementType()))
    return reject<Op>(location, "has operand ", type, ", expected floats (dg.cast makes them) and a dimension");
  for (Value operand : operands.drop_front())
    if (!mayBeEqual(tensorOf(operand).getShape(), type.getShape()) ||
        tensorOf(operand).getElementType() != type.getElementType())
      return reject<Op>(location, "has operands ", type, " and ", operand.getType(), ", expected equal types");
  inferred.push_back(type);
  return success();
}

/// Every dimension but the last `numWhole` may be cut, in all operands and results alike.
static ShardingRule rowwiseRule(Operation *op, int64_t numWhole) {
  SmallVector<unsigned> operands = llvm::to_vector(llvm::seq(op->getNumOperands()));
  return leadingRule(op, std::max<int64_t>(tensorOf(op->getOperand(0)).getRank() - numWhole, 0), operands, {0});
}

static OpCost costPerElement(Operation *op, double flops) {
  return {flops * tensorOf(op->getOperand(0)).getNumElements(), operandAndResultBytes(op)};
}

/// The axis of a softmax, counted from the first dimension.
template <typename Op> static int64_t axisOf(Op op) {
  int64_t rank = tensorOf(op.getInput()).getRank();
  return *normalizedAxis(op.getAxis() ? int64_t(*op.getAxis()) : rank - 1, rank);
}
template <typename Op> static bool isOverLast(Op op) { return axisOf(op) == tensorOf(op.getInput()).getRank() - 1; }

template <typename Op>
static LogicalResult checkAxis(std::optional<Location> location, typename Op::Adaptor op, Type inferred) {
  auto type = dyn_cast<RankedTensorType>(inferred);
  if (type && op.getAxis() && !normalizedAxis(int64_t(*op.getAxis()), type.getRank()))
    return reject<Op>(location, "works along axis ", int64_t(*op.getAxis()), " of ", type, ", expected one from ",
                      -type.getRank(), " to ", type.getRank() - 1);
  return success();
}

/// Every dimension but the axis may be cut.
template <typename Op> static ShardingRule axisRule(Op op) {
  ShardingRule rule = emptyShardingRule(op);
  auto type = tensorOf(op.getInput());
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim != axisOf(op)) {
      int32_t factor = rule.addFactor(type.getDimSize(dim));
      rule.operands[0][dim].push_back(factor);
      rule.results[0][dim].push_back(factor);
    }
  return rule;
}

/// The op over the last dimension, between two transpositions that exchange it with the axis.
template <typename Op, typename Build> static SmallVector<Value> moveAxis(Op op, OpBuilder &builder, Build build) {
  if (isOverLast(op))
    return {};
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, tensorOf(op.getInput()).getRank()));
  std::swap(permutation[axisOf(op)], permutation.back());
  Value turned = builder.create<TransposeOp>(op.getLoc(), op.getInput(), permutation, PlaceAttr());
  return {builder.create<TransposeOp>(op.getLoc(), build(turned), permutation, PlaceAttr())};
}

//===- SoftmaxOp -------------------------------------------------------------------------------------------------===//

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                          SmallVectorImpl<Type> &inferred) {
  if (failed(inferRowwise<SoftmaxOp>(context, location, op.getOperands(), inferred)))
    return failure();
  auto type = dyn_cast<RankedTensorType>(inferred[0]);
  if (type && op.getCausal() && (type.getRank() < 2 || !mayBeEqual(type.getShape().end()[-2], type.getShape().back())))
    return reject<SoftmaxOp>(location, "is causal over ", type,
                             ", expected last dimensions of equal size: (token, seen token)");
  if (type && op.getCausal() && op.getAxis())
    return reject<SoftmaxOp>(location, "is causal along axis ", int64_t(*op.getAxis()),
                             ", expected no axis: tokens are in the last dimension");
  return checkAxis<SoftmaxOp>(location, op, inferred[0]);
}

SmallVector<Value> SoftmaxOp::decompose(OpBuilder &builder) {
  return moveAxis(*this, builder, [&](Value turned) -> Value {
    return builder.create<SoftmaxOp>(getLoc(), turned, getScale(), /*causal=*/false, PlaceAttr());
  });
}

Gradients SoftmaxOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  if (!isOverLast(*this))
    return emitOpError("is not over the last dimension: run --dg-decompose first");
  // Masked elements have y = 0, so the mask is in the output already.
  return SmallVector<Value>{builder.create<SoftmaxGradOp>(getLoc(), grads[0], getResult(), getScale(), PlaceAttr())};
}

/// A causal row must know its place among the tokens, so they stay whole too.
ShardingRule SoftmaxOp::getShardingRule() { return getCausal() ? rowwiseRule(*this, 2) : axisRule(*this); }
OpCost SoftmaxOp::getCost() { return costPerElement(*this, 5); }

LogicalResult SoftmaxOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                  const RunScalars &) {
  const HostTensor &input = operands[0];
  int64_t axis = axisOf(*this), size = input.shape[axis], stride = lineStride(input.shape, axis), line = 0;
  double scale = getScale().convertToDouble();
  forEachLine(input.shape, axis, [&](int64_t first) {
    const double *in = input.data.data() + first;
    double *out = results[0].data.data() + first;
    int64_t numSeen = getCausal() ? line++ % size + 1 : size;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t i = 0; i < numSeen; ++i)
      largest = std::max(largest, scale * in[i * stride]);
    for (int64_t i = 0; i < numSeen; ++i)
      sum += out[i * stride] = std::exp(scale * in[i * stride] - largest);
    for (int64_t i = 0; i < numSeen; ++i)
      out[i * stride] /= sum;
  });
  return success();
}

//===- SoftmaxGradOp ---------------------------------------------------------------------------------------------===//

LogicalResult SoftmaxGradOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                              SmallVectorImpl<Type> &inferred) {
  return inferRowwise<SoftmaxGradOp>(context, location, op.getOperands(), inferred);
}

ShardingRule SoftmaxGradOp::getShardingRule() { return rowwiseRule(*this, 1); }
OpCost SoftmaxGradOp::getCost() { return costPerElement(*this, 5); }

LogicalResult SoftmaxGradOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                      const RunScalars &) {
  int64_t size = rowSize(operands[0]);
  for (int64_t row = 0; row < numRows(operands[0]); ++row) {
    const double *grad = operands[0].data.data() + row * size, *output = operands[1].data.data() + row * size;
    double dot = 0;
    for (int64_t i = 0; i < size; ++i)
      dot += grad[i] * output[i];
    for (int64_t i = 0; i < size; ++i)
      results[0].data[row * size + i] = getScale().convertToDouble() * output[i] * (grad[i] - dot);
  }
  return success();
}

/// With u the gradient that arrives: at dy it is the same function of u, at y scale · (u (dy - Σ dy y) - dy Σ u y).
Gradients SoftmaxGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Expression u(builder, getLoc(), grads[0]), g(builder, getLoc(), getGrad()), y(builder, getLoc(), getOutput());
  auto sumOfRow = [&](Value value) {
    return Expression(builder, getLoc(),
                      builder.create<ReduceSumOp>(getLoc(), value, ArrayRef<int64_t>{tensorOf(value).getRank() - 1},
                                                  /*keep=*/true, PlaceAttr()));
  };
  Value atGrad = builder.create<SoftmaxGradOp>(getLoc(), u, y, getScale(), PlaceAttr());
  Expression atOutput = u * (g - sumOfRow(g * y)) - g * sumOfRow(u * y);
  return SmallVector<Value>{atGrad, atOutput * getScale().convertToDouble()};
}

//===- LogSoftmaxOp ----------------------------------------------------------------------------------------------===//

LogicalResult LogSoftmaxOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                             SmallVectorImpl<Type> &inferred) {
  if (failed(inferRowwise<LogSoftmaxOp>(context, location, op.getOperands(), inferred)))
    return failure();
  return checkAxis<LogSoftmaxOp>(location, op, inferred[0]);
}

SmallVector<Value> LogSoftmaxOp::decompose(OpBuilder &builder) {
  return moveAxis(*this, builder,
                  [&](Value turned) -> Value { return builder.create<LogSoftmaxOp>(getLoc(), turned, PlaceAttr()); });
}

Gradients LogSoftmaxOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  if (!isOverLast(*this))
    return emitOpError("is not over the last dimension: run --dg-decompose first");
  return SmallVector<Value>{builder.create<LogSoftmaxGradOp>(getLoc(), grads[0], getResult(), PlaceAttr())};
}

ShardingRule LogSoftmaxOp::getShardingRule() { return axisRule(*this); }
OpCost LogSoftmaxOp::getCost() { return costPerElement(*this, 5); }

LogicalResult LogSoftmaxOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                     const RunScalars &) {
  const HostTensor &input = operands[0];
  int64_t axis = axisOf(*this), size = input.shape[axis], stride = lineStride(input.shape, axis);
  forEachLine(input.shape, axis, [&](int64_t first) {
    const double *in = input.data.data() + first;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t i = 0; i < size; ++i)
      largest = std::max(largest, in[i * stride]);
    for (int64_t i = 0; i < size; ++i)
      sum += std::exp(in[i * stride] - largest);
    for (int64_t i = 0; i < size; ++i)
      results[0].data[first + i * stride] = in[i * stride] - largest - std::log(sum);
  });
  return success();
}

//===- LogSoftmaxGradOp ------------------------------------------------------------------------------------------===//

LogicalResult LogSoftmaxGradOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                                 SmallVectorImpl<Type> &inferred) {
  return inferRowwise<LogSoftmaxGradOp>(context, location, op.getOperands(), inferred);
}

ShardingRule LogSoftmaxGradOp::getShardingRule() { return rowwiseRule(*this, 1); }
OpCost LogSoftmaxGradOp::getCost() { return costPerElement(*this, 4); }

LogicalResult LogSoftmaxGradOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                         const RunScalars &) {
  int64_t size = rowSize(operands[0]);
  for (int64_t row = 0; row < numRows(operands[0]); ++row) {
    const double *grad = operands[0].data.data() + row * size, *output = operands[1].data.data() + row * size;
    double sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sum += grad[i];
    for (int64_t i = 0; i < size; ++i)
      results[0].data[row * size + i] = grad[i] - std::exp(output[i]) * sum;
  }
  return success();
}

/// With u the gradient that arrives: at dy it is u - Σ u e^y, at y -u e^y Σ dy.
Gradients LogSoftmaxGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Expression u(builder, getLoc(), grads[0]), g(builder, getLoc(), getGrad()), y(builder, getLoc(), getOutput());
  auto sumOfRow = [&](Value value) {
    return Expression(builder, getLoc(),
                      builder.create<ReduceSumOp>(getLoc(), value, ArrayRef<int64_t>{tensorOf(value).getRank() - 1},
                                                  /*keep=*/true, PlaceAttr()));
  };
  Expression weighted = u * y.apply<ExpOp>();
  return SmallVector<Value>{u - sumOfRow(weighted), -(weighted * sumOfRow(g))};
}

//===- LayerNormOp -----------------------------------------------------------------------------------------------===//

/// The first of the dimensions that are normalized together; nothing where the axis is none of the input's.
static std::optional<int64_t> firstNormalized(IntegerAttr axis, RankedTensorType input) {
  int64_t first = axis ? axis.getInt() : -1, rank = input.getRank();
  first = first < 0 ? first + rank : first;
  return first >= 0 && first < rank ? std::optional<int64_t>(first) : std::nullopt;
}

/// Weight and bias have the sizes of the input's dimensions from `first` on.
template <typename Op>
static LogicalResult checkRowParameter(std::optional<Location> location, StringRef name, RankedTensorType parameter,
                                       RankedTensorType input, int64_t first) {
  bool isGood = isa<FloatType>(input.getElementType()) &&
                mayBeEqual(parameter.getShape(), input.getShape().drop_front(size_t(first))) &&
                (parameter.getElementType() == input.getElementType() ||
                 parameter.getElementType() == arithmeticType(input.getElementType()));
  return isGood ? success()
                : reject<Op>(location, "has ", name, " ", parameter, " for input ", input,
                             ", expected floats, and one element for each of the input's ",
                             first + 1 == input.getRank() ? "last dimension" : "dimensions that are normalized");
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                            SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto input = tensorOf(op.getInput());
  std::optional<int64_t> first = firstNormalized(op.getAxisAttr(), input);
  if (!first)
    return reject<LayerNormOp>(location, "has input ", input, " and axis ", op.getAxisAttr(),
                               ", expected one of its dimensions");
  if (failed(checkRowParameter<LayerNormOp>(location, "weight", tensorOf(op.getWeight()), input, *first)) ||
      failed(checkRowParameter<LayerNormOp>(location, "bias", tensorOf(op.getBias()), input, *first)))
    return failure();
  inferred.push_back(input);
  return success();
}

/// Several dimensions are normalized as one.
SmallVector<Value> LayerNormOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  int64_t first = *firstNormalized(getAxisAttr(), input);
  if (first + 1 == input.getRank() && !getAxisAttr())
    return {};
  int64_t size = tensorOf(getWeight()).getNumElements();
  SmallVector<int64_t> rows(input.getShape().take_front(size_t(first)));
  rows.push_back(size);
  Value normal = builder.create<LayerNormOp>(
      getLoc(), buildReshape(builder, getLoc(), getInput(), rows), buildReshape(builder, getLoc(), getWeight(), {size}),
      buildReshape(builder, getLoc(), getBias(), {size}), getEpsilonAttr(), PlaceAttr());
  return {buildReshape(builder, getLoc(), normal, input.getShape())};
}

Gradients LayerNormOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  auto op = builder.create<LayerNormGradOp>(getLoc(), grads[0], getInput(), getWeight(), getEpsilon(), PlaceAttr());
  return SmallVector<Value>(op->getResults());
}

ShardingRule LayerNormOp::getShardingRule() {
  return leadingRule(*this, *firstNormalized(getAxisAttr(), tensorOf(getInput())), {0}, {0});
}
OpCost LayerNormOp::getCost() { return costPerElement(*this, 8); }

/// Mean, and 1/√(variance + ε), of a row.
static std::pair<double, double> momentsOf(ArrayRef<double> row, double epsilon) {
  double mean = 0, variance = 0;
  for (double x : row)
    mean += x / row.size();
  for (double x : row)
    variance += (x - mean) * (x - mean) / row.size();
  return {mean, 1 / std::sqrt(variance + epsilon)};
}

LogicalResult LayerNormOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                    const RunScalars &) {
  int64_t size = operands[1].numElements(), rows = size == 0 ? 0 : operands[0].numElements() / size;
  for (int64_t row = 0; row < rows; ++row) {
    auto in = ArrayRef<double>(operands[0].data).slice(row * size, size);
    auto [mean, inverse] = momentsOf(in, getEpsilon().convertToDouble());
    for (int64_t i = 0; i < size; ++i)
      results[0].data[row * size + i] = (in[i] - mean) * inverse * operands[1].data[i] + operands[2].data[i];
  }
  return success();
}

//===- LayerNormGradOp -------------------------------------------------------------------------------------------===//

LogicalResult LayerNormGradOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                                SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 3, inferred))
    return success();
  auto grad = tensorOf(op.getGrad()), input = tensorOf(op.getInput()), weight = tensorOf(op.getWeight());
  if (!mayBeEqual(grad.getShape(), input.getShape()) || grad.getElementType() != input.getElementType())
    return reject<LayerNormGradOp>(location, "has gradient ", grad, " for input ", input, ", expected equal types");
  if (input.getRank() < 1)
    return reject<LayerNormGradOp>(location, "has input ", input, ", expected at least one dimension");
  if (failed(checkRowParameter<LayerNormGradOp>(location, "weight", weight, input, input.getRank() - 1)))
    return failure();
  inferred.append({input, weight, weight});
  return success();
}

/// The gradients of weight and bias are sums over rows: partial where the rows are cut.
ShardingRule LayerNormGradOp::getShardingRule() {
  return leadingRule(*this, tensorOf(getInput()).getRank() - 1, {0, 1}, {0});
}
OpCost LayerNormGradOp::getCost() { return costPerElement(*this, 16); }

/// The same formula from ops that have gradients.
Gradients LayerNormGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return differentiateParts(builder, *this, grads, [&](OpBuilder &parts) -> SmallVector<Value> {
    Location loc = getLoc();
    int64_t last = tensorOf(getInput()).getRank() - 1;
    double size = double(tensorOf(getWeight()).getNumElements());
    SmallVector<int64_t> rows = llvm::to_vector(llvm::seq<int64_t>(0, last));
    auto sum = [&](Value value, ArrayRef<int64_t> dims, bool keeps) {
      return Expression(parts, loc, parts.create<ReduceSumOp>(loc, value, dims, keeps, PlaceAttr()));
    };
    auto mean = [&](Expression value) { return sum(value, {last}, /*keeps=*/true) / size; };
    auto overRows = [&](Expression value) { return rows.empty() ? value : sum(value, rows, /*keeps=*/false); };
    Expression x(parts, loc, getInput()), dy(parts, loc, getGrad()), w(parts, loc, getWeight());
    Expression centred = x - mean(x);
    Expression inverse = (mean(centred * centred) + getEpsilon().convertToDouble()).apply<RsqrtOp>();
    Expression normal = centred * inverse, h = dy * w;
    return {(h - mean(h) - normal * mean(h * normal)) * inverse, overRows(dy * normal), overRows(dy)};
  });
}

/// With x̂ the normalised row and h = dy · weight: dx = (h - mean(h) - x̂ · mean(h · x̂)) / √(variance + ε).
LogicalResult LayerNormGradOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                        const RunScalars &) {
  int64_t size = rowSize(operands[0]);
  for (int64_t row = 0; row < numRows(operands[0]); ++row) {
    auto grad = ArrayRef<double>(operands[0].data).slice(row * size, size);
    auto in = ArrayRef<double>(operands[1].data).slice(row * size, size);
    auto [mean, inverse] = momentsOf(in, getEpsilon().convertToDouble());
    double meanH = 0, meanHX = 0;
    for (int64_t i = 0; i < size; ++i) {
      double normal = (in[i] - mean) * inverse, h = grad[i] * operands[2].data[i];
      meanH += h / size;
      meanHX += h * normal / size;
      results[1].data[i] += grad[i] * normal;
      results[2].data[i] += grad[i];
    }
    for (int64_t i = 0; i < size; ++i)
      results[0].data[row * size + i] =
          (grad[i] * operands[2].data[i] - meanH - (in[i] - mean) * inverse * meanHX) * inverse;
  }
  return success();
}

//===- Definitions -----------------------------------------------------------------------------------------------===//

void DGDialect::addNormalizationOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/reduction/NormalizationOps.cpp.inc"
      >();
}

} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/ops/reduction/NormalizationOps.cpp.inc"
