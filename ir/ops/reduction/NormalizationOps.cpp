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

/// Operands of one type and at least one dimension; the result is like them.
static FailureOr<Type> inferRowwise(const Rejection &reject, ValueRange operands) {
  auto type = tensorOf(operands[0]);
  if (type.getRank() < 1 || !isa<FloatType>(type.getElementType()))
    return reject("has operand ", type, ", expected floats (dg.cast makes them) and a dimension");
  for (Value operand : operands.drop_front())
    if (!mayBeEqual(tensorOf(operand).getShape(), type.getShape()) ||
        tensorOf(operand).getElementType() != type.getElementType())
      return reject("has operands ", type, " and ", operand.getType(), ", expected equal types");
  return type;
}

/// Every dimension but the last `numWhole` may be cut, in all operands and results alike.
static ShardingRule rowwiseRule(Operation *op, int64_t numWhole) {
  SmallVector<unsigned> operands = llvm::to_vector(llvm::seq(op->getNumOperands()));
  return leadingRule(op, std::max<int64_t>(tensorOf(op->getOperand(0)).getRank() - numWhole, 0), operands, {0});
}

/// The axis of a softmax, counted from the first dimension.
template <typename Op> static int64_t axisOf(Op op) {
  int64_t rank = tensorOf(op.getInput()).getRank();
  return *normalizedAxis(op.getAxis() ? int64_t(*op.getAxis()) : rank - 1, rank);
}
template <typename Op> static bool isOverLast(Op op) { return axisOf(op) == tensorOf(op.getInput()).getRank() - 1; }

/// The type of a softmax along an axis that the input has, or the last one.
template <typename Adaptor> static FailureOr<Type> inferAlongAxis(Adaptor op, const Rejection &reject) {
  FailureOr<Type> inferred = inferRowwise(reject, op.getOperands());
  if (failed(inferred) || !op.getAxis())
    return inferred;
  int64_t axis = *op.getAxis(), rank = tensorOf(op.getInput()).getRank();
  if (!normalizedAxis(axis, rank))
    return reject("works along axis ", axis, " of ", *inferred, ", expected one from ", -rank, " to ", rank - 1);
  return inferred;
}

/// The op over the last dimension, between two transpositions that exchange it with the axis.
template <typename Op, typename Build> static SmallVector<Value> moveAxis(Op op, OpBuilder &builder, Build build) {
  if (isOverLast(op))
    return {};
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, tensorOf(op.getInput()).getRank()));
  std::swap(permutation[axisOf(op)], permutation.back());
  Value turned = create<TransposeOp>(builder, op.getLoc(), op.getInput(), permutation);
  return {create<TransposeOp>(builder, op.getLoc(), build(turned), permutation)};
}

/// The sum of each row, which is kept as a dimension of 1.
static Expression sumOfRow(Expression value) {
  const int64_t last[] = {tensorOf(value).getRank() - 1};
  return value.apply<ReduceSumOp>(last, /*keep=*/true);
}

//===- SoftmaxOp -------------------------------------------------------------------------------------------------===//

FailureOr<Type> SoftmaxOp::inferType(Adaptor op, const Rejection &reject) {
  if (failed(inferRowwise(reject, op.getOperands())))
    return failure();
  auto type = tensorOf(op.getInput());
  if (op.getCausal() && (type.getRank() < 2 || !mayBeEqual(type.getShape().end()[-2], type.getShape().back())))
    return reject("is causal over ", type, ", expected last dimensions of equal size: (token, seen token)");
  if (op.getCausal() && op.getAxis())
    return reject("is causal along axis ", int64_t(*op.getAxis()),
                  ", expected no axis: tokens are in the last dimension");
  return inferAlongAxis(op, reject);
}

SmallVector<Value> SoftmaxOp::decompose(OpBuilder &builder) {
  return moveAxis(*this, builder, [&](Value turned) -> Value {
    return create<SoftmaxOp>(builder, getLoc(), turned, getScale(), /*causal=*/false);
  });
}

Gradients SoftmaxOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  if (!isOverLast(*this))
    return emitOpError("is not over the last dimension: run --dg-decompose first");
  // Masked elements have y = 0, so the mask is in the output already.
  return SmallVector<Value>{create<SoftmaxGradOp>(builder, getLoc(), grads[0], getResult(), getScale())};
}

/// A causal row must know its place among the tokens, so they stay whole too.
ShardingRule SoftmaxOp::getShardingRule() {
  return getCausal() ? rowwiseRule(*this, 2) : lineRule(*this, axisOf(*this));
}
void SoftmaxOp::compute(HostOperands operands, HostResults results) {
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
}

//===- SoftmaxGradOp ---------------------------------------------------------------------------------------------===//

FailureOr<Type> SoftmaxGradOp::inferType(Adaptor op, const Rejection &reject) {
  return inferRowwise(reject, op.getOperands());
}

ShardingRule SoftmaxGradOp::getShardingRule() { return rowwiseRule(*this, 1); }
void SoftmaxGradOp::compute(HostOperands operands, HostResults results) {
  int64_t size = rowSize(operands[0]);
  for (int64_t row = 0; row < numRows(operands[0]); ++row) {
    const double *grad = operands[0].data.data() + row * size, *output = operands[1].data.data() + row * size;
    double dot = 0;
    for (int64_t i = 0; i < size; ++i)
      dot += grad[i] * output[i];
    for (int64_t i = 0; i < size; ++i)
      results[0].data[row * size + i] = getScale().convertToDouble() * output[i] * (grad[i] - dot);
  }
}

/// With u the gradient that arrives: at dy it is the same function of u, at y scale · (u (dy - Σ dy y) - dy Σ u y).
Gradients SoftmaxGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Expression u(builder, getLoc(), grads[0]), g(builder, getLoc(), getGrad()), y(builder, getLoc(), getOutput());
  Value atGrad = create<SoftmaxGradOp>(builder, getLoc(), u, y, getScale());
  Expression atOutput = u * (g - sumOfRow(g * y)) - g * sumOfRow(u * y);
  return SmallVector<Value>{atGrad, atOutput * getScale().convertToDouble()};
}

//===- LogSoftmaxOp ----------------------------------------------------------------------------------------------===//

FailureOr<Type> LogSoftmaxOp::inferType(Adaptor op, const Rejection &reject) { return inferAlongAxis(op, reject); }

SmallVector<Value> LogSoftmaxOp::decompose(OpBuilder &builder) {
  return moveAxis(*this, builder,
                  [&](Value turned) -> Value { return create<LogSoftmaxOp>(builder, getLoc(), turned); });
}

Gradients LogSoftmaxOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  if (!isOverLast(*this))
    return emitOpError("is not over the last dimension: run --dg-decompose first");
  return SmallVector<Value>{create<LogSoftmaxGradOp>(builder, getLoc(), grads[0], getResult())};
}

ShardingRule LogSoftmaxOp::getShardingRule() { return lineRule(*this, axisOf(*this)); }
void LogSoftmaxOp::compute(HostOperands operands, HostResults results) {
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
}

//===- LogSoftmaxGradOp ------------------------------------------------------------------------------------------===//

FailureOr<Type> LogSoftmaxGradOp::inferType(Adaptor op, const Rejection &reject) {
  return inferRowwise(reject, op.getOperands());
}

ShardingRule LogSoftmaxGradOp::getShardingRule() { return rowwiseRule(*this, 1); }
void LogSoftmaxGradOp::compute(HostOperands operands, HostResults results) {
  int64_t size = rowSize(operands[0]);
  for (int64_t row = 0; row < numRows(operands[0]); ++row) {
    const double *grad = operands[0].data.data() + row * size, *output = operands[1].data.data() + row * size;
    double sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sum += grad[i];
    for (int64_t i = 0; i < size; ++i)
      results[0].data[row * size + i] = grad[i] - std::exp(output[i]) * sum;
  }
}

/// With u the gradient that arrives: at dy it is u - Σ u e^y, at y -u e^y Σ dy.
Gradients LogSoftmaxGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Expression u(builder, getLoc(), grads[0]), g(builder, getLoc(), getGrad()), y(builder, getLoc(), getOutput());
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
static LogicalResult checkRowParameter(const Rejection &reject, StringRef name, RankedTensorType parameter,
                                       RankedTensorType input, int64_t first) {
  bool isGood = isa<FloatType>(input.getElementType()) &&
                mayBeEqual(parameter.getShape(), input.getShape().drop_front(size_t(first))) &&
                (parameter.getElementType() == input.getElementType() ||
                 parameter.getElementType() == arithmeticType(input.getElementType()));
  return isGood ? success()
                : reject("has ", name, " ", parameter, " for input ", input,
                         ", expected floats, and one element for each of the input's ",
                         first + 1 == input.getRank() ? "last dimension" : "dimensions that are normalized");
}

FailureOr<Type> LayerNormOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  std::optional<int64_t> first = firstNormalized(op.getAxisAttr(), input);
  if (!first)
    return reject("has input ", input, " and axis ", op.getAxisAttr(), ", expected one of its dimensions");
  if (failed(checkRowParameter(reject, "weight", tensorOf(op.getWeight()), input, *first)) ||
      failed(checkRowParameter(reject, "bias", tensorOf(op.getBias()), input, *first)))
    return failure();
  return input;
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
  Value normal = create<LayerNormOp>(builder, getLoc(), buildReshape(builder, getLoc(), getInput(), rows),
                                     buildReshape(builder, getLoc(), getWeight(), {size}),
                                     buildReshape(builder, getLoc(), getBias(), {size}), getEpsilonAttr());
  return {buildReshape(builder, getLoc(), normal, input.getShape())};
}

Gradients LayerNormOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  auto op = create<LayerNormGradOp>(builder, getLoc(), grads[0], getInput(), getWeight(), getEpsilon());
  return SmallVector<Value>(op->getResults());
}

ShardingRule LayerNormOp::getShardingRule() {
  return leadingRule(*this, *firstNormalized(getAxisAttr(), tensorOf(getInput())), {0}, {0});
}
/// Mean, and 1/√(variance + ε), of a row.
static std::pair<double, double> momentsOf(ArrayRef<double> row, double epsilon) {
  double mean = 0, variance = 0;
  for (double x : row)
    mean += x / row.size();
  for (double x : row)
    variance += (x - mean) * (x - mean) / row.size();
  return {mean, 1 / std::sqrt(variance + epsilon)};
}

void LayerNormOp::compute(HostOperands operands, HostResults results) {
  int64_t size = operands[1].numElements(), rows = size == 0 ? 0 : operands[0].numElements() / size;
  for (int64_t row = 0; row < rows; ++row) {
    auto in = ArrayRef<double>(operands[0].data).slice(row * size, size);
    auto [mean, inverse] = momentsOf(in, getEpsilon().convertToDouble());
    for (int64_t i = 0; i < size; ++i)
      results[0].data[row * size + i] = (in[i] - mean) * inverse * operands[1].data[i] + operands[2].data[i];
  }
}

//===- LayerNormGradOp -------------------------------------------------------------------------------------------===//

FailureOr<SmallVector<Type>> LayerNormGradOp::inferTypes(Adaptor op, const Rejection &reject) {
  auto grad = tensorOf(op.getGrad()), input = tensorOf(op.getInput()), weight = tensorOf(op.getWeight());
  if (!mayBeEqual(grad.getShape(), input.getShape()) || grad.getElementType() != input.getElementType())
    return reject("has gradient ", grad, " for input ", input, ", expected equal types");
  if (input.getRank() < 1)
    return reject("has input ", input, ", expected at least one dimension");
  if (failed(checkRowParameter(reject, "weight", weight, input, input.getRank() - 1)))
    return failure();
  return SmallVector<Type>{input, weight, weight};
}

/// The gradients of weight and bias are sums over rows: partial where the rows are cut.
ShardingRule LayerNormGradOp::getShardingRule() {
  return leadingRule(*this, tensorOf(getInput()).getRank() - 1, {0, 1}, {0});
}
/// The same formula from ops that have gradients.
Gradients LayerNormGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return differentiateParts(builder, *this, grads, [&](OpBuilder &parts) -> SmallVector<Value> {
    Location loc = getLoc();
    int64_t last = tensorOf(getInput()).getRank() - 1;
    double size = double(tensorOf(getWeight()).getNumElements());
    SmallVector<int64_t> rows = llvm::to_vector(llvm::seq<int64_t>(0, last));
    auto sum = [&](Value value, ArrayRef<int64_t> dims, bool keeps) {
      return Expression(parts, loc, create<ReduceSumOp>(parts, loc, value, dims, keeps));
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
void LayerNormGradOp::compute(HostOperands operands, HostResults results) {
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
}

} // namespace dg::ir

#define DG_OPS "ir/ops/reduction/NormalizationOps.cpp.inc"
#define DG_ADD_OPS addNormalizationOps
#include "ir/ops/Family.inc"
