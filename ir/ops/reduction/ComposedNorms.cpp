// SPDX-License-Identifier: Apache-2.0
// Norms that are made of sums and elementwise ops: over any dimensions, by groups of channels, by the mean square.
// Means are taken first and squares of distances from them after, so that nothing cancels.
#include "ir/dialect/Expression.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/ops/reduction/PoolingOps.h"
#include "ir/ops/reduction/StatisticsOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/ReductionSupport.h"
#include "ir/rules/TypeInference.h"
#include "ir/rules/Windows.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

/// The mean over `dims`, which stay with size 1.
static Value buildMean(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> dims) {
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= tensorOf(value).getDimSize(dim);
  Value sum = create<ReduceSumOp>(builder, loc, value, dims, /*keep=*/true);
  return buildScale(builder, loc, sum, 1.0 / double(std::max<int64_t>(count, 1)));
}

/// value · weight + bias with one number for each channel (dimension 1).
static Value buildChannelAffine(OpBuilder &builder, Location loc, Value value, Value weight, Value bias) {
  SmallVector<int64_t> shape(tensorOf(value).getRank() - 1, 1);
  shape[0] = tensorOf(weight).getDimSize(0);
  Value scaled = create<MulOp>(builder, loc, value, buildReshape(builder, loc, weight, shape));
  return create<AddOp>(builder, loc, scaled, buildReshape(builder, loc, bias, shape));
}

/// A quotient of means is a float.
static LogicalResult checkFloats(const Rejection &reject, RankedTensorType input) {
  return isa<FloatType>(input.getElementType()) ? success()
                                                : reject("has input ", input, ", expected floats (dg.cast makes them)");
}

/// [n, c, …] with weight and bias of one element for each channel.
static FailureOr<Type> inferChannelNorm(const Rejection &reject, ValueRange operands) {
  auto input = tensorOf(operands[0]);
  if (failed(checkFloats(reject, input)))
    return failure();
  for (Value operand : operands.drop_front()) {
    auto type = tensorOf(operand);
    if (input.getRank() < 2 || type.getRank() != 1 || !mayBeEqual(type.getDimSize(0), input.getDimSize(1)) ||
        type.getElementType() != input.getElementType())
      return reject("has input ", input, " and operand ", type,
                    ", expected [n, c, …], and weight and bias with one element for each channel (dimension 1)");
  }
  return input;
}

/// Normalizes `blocks` blocks of elements that lie one after the other, then scales and shifts by channel.
static void evaluateBlocks(HostOperands operands, HostTensor &result, int64_t blocks, double epsilon) {
  const HostTensor &input = operands[0];
  size_t size = std::max<size_t>(1, input.data.size() / std::max<size_t>(1, size_t(blocks)));
  size_t channels = size_t(input.shape[1]);
  size_t places = input.data.size() / std::max<size_t>(1, size_t(input.shape[0]) * channels);
  for (size_t start = 0; start < input.data.size(); start += size) {
    double mean = 0, variance = 0;
    for (size_t i = start; i < start + size; ++i)
      mean += input.data[i] / double(size);
    for (size_t i = start; i < start + size; ++i)
      variance += (input.data[i] - mean) * (input.data[i] - mean) / double(size);
    for (size_t i = start; i < start + size; ++i) {
      size_t channel = i / places % channels;
      result.data[i] = (input.data[i] - mean) / std::sqrt(variance + epsilon) * operands[1].data[channel] +
                       operands[2].data[channel];
    }
  }
}

//===- MeanVarianceNormOp ----------------------------------------------------------------------------------------===//

FailureOr<Type> MeanVarianceNormOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  if (failed(checkFloats(reject, input)))
    return failure();
  if (!areDimsOf(op.getDims(), input.getRank()))
    return reject("normalizes ", input, " over dimensions ", op.getDimsAttr(),
                  ", expected different numbers from 0 to ", input.getRank() - 1);
  return input;
}

SmallVector<Value> MeanVarianceNormOp::decompose(OpBuilder &builder) {
  Value mean = buildMean(builder, getLoc(), getInput(), getDims());
  Value distance = create<SubOp>(builder, getLoc(), getInput(), mean);
  Value square = create<MulOp>(builder, getLoc(), distance, distance);
  Value variance = buildMean(builder, getLoc(), square, getDims());
  Value inverse = (Expression(builder, getLoc(), variance) + getEpsilon().convertToDouble()).apply<RsqrtOp>();
  return {create<MulOp>(builder, getLoc(), distance, inverse)};
}

void MeanVarianceNormOp::compute(HostOperands operands, HostResults results) {
  const HostTensor &input = operands[0];
  HostTensor mean{input.shape, {}};
  for (int64_t dim : getDims())
    mean.shape[dim] = 1;
  mean.data.assign(mean.numElements(), 0);
  HostTensor variance = mean;
  double count = double(input.data.size()) / double(std::max<size_t>(1, mean.data.size()));
  SmallVector<SmallVector<int64_t>> strides{broadcastStrides(mean.shape, input.shape)};
  auto forEach = [&](auto visit) {
    size_t i = 0;
    forEachIndex(input.shape, strides, [&](ArrayRef<int64_t> at) { visit(i++, size_t(at[0])); });
  };
  forEach([&](size_t i, size_t at) { mean.data[at] += input.data[i] / count; });
  forEach([&](size_t i, size_t at) { variance.data[at] += std::pow(input.data[i] - mean.data[at], 2) / count; });
  forEach([&](size_t i, size_t at) {
    results[0].data[i] =
        (input.data[i] - mean.data[at]) / std::sqrt(variance.data[at] + getEpsilon().convertToDouble());
  });
}

//===- GroupNormOp -----------------------------------------------------------------------------------------------===//

FailureOr<Type> GroupNormOp::inferType(Adaptor op, const Rejection &reject) {
  FailureOr<Type> inferred = inferChannelNorm(reject, op.getOperands());
  if (failed(inferred))
    return failure();
  auto type = tensorOf(op.getInput());
  int64_t groups = op.getGroups();
  if (!type.isDynamicDim(1) && (groups < 1 || type.getDimSize(1) % groups != 0))
    return reject("cuts ", type.getDimSize(1), " channels into ", groups,
                  " groups, expected a number that divides them");
  return inferred;
}

SmallVector<Value> GroupNormOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  int64_t samples = input.getDimSize(0), groups = getGroups();
  int64_t size = input.getNumElements() / std::max<int64_t>(1, samples * groups);
  Value rows = buildReshape(builder, getLoc(), getInput(), {samples, groups, size});
  const int64_t last[] = {2};
  Value normal = create<MeanVarianceNormOp>(builder, getLoc(), rows, last, getEpsilon());
  normal = buildReshape(builder, getLoc(), normal, input.getShape());
  return {buildChannelAffine(builder, getLoc(), normal, getWeight(), getBias())};
}

void GroupNormOp::compute(HostOperands operands, HostResults results) {
  evaluateBlocks(operands, results[0], operands[0].shape[0] * getGroups(), getEpsilon().convertToDouble());
}

//===- InstanceNormOp --------------------------------------------------------------------------------------------===//

FailureOr<Type> InstanceNormOp::inferType(Adaptor op, const Rejection &reject) {
  return inferChannelNorm(reject, op.getOperands());
}

SmallVector<Value> InstanceNormOp::decompose(OpBuilder &builder) {
  SmallVector<int64_t> places = llvm::to_vector(llvm::seq<int64_t>(2, tensorOf(getInput()).getRank()));
  Value normal = create<MeanVarianceNormOp>(builder, getLoc(), getInput(), places, getEpsilon());
  return {buildChannelAffine(builder, getLoc(), normal, getWeight(), getBias())};
}

void InstanceNormOp::compute(HostOperands operands, HostResults results) {
  evaluateBlocks(operands, results[0], operands[0].shape[0] * operands[0].shape[1], getEpsilon().convertToDouble());
}

//===- RmsNormOp -------------------------------------------------------------------------------------------------===//

FailureOr<Type> RmsNormOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), weight = tensorOf(op.getWeight());
  if (failed(checkFloats(reject, input)))
    return failure();
  if (weight.getRank() < 1 || weight.getRank() > input.getRank() ||
      !mayBeEqual(input.getShape().take_back(weight.getRank()), weight.getShape()) ||
      weight.getElementType() != input.getElementType())
    return reject("has input ", input, " and weight ", weight, ", expected a weight of the input's last dimensions");
  return input;
}

SmallVector<Value> RmsNormOp::decompose(OpBuilder &builder) {
  int64_t rank = tensorOf(getInput()).getRank(), numRows = rank - tensorOf(getWeight()).getRank();
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(numRows, rank));
  Value square = create<MulOp>(builder, getLoc(), getInput(), getInput());
  Expression mean(builder, getLoc(), buildMean(builder, getLoc(), square, dims));
  Value inverse = (mean + getEpsilon().convertToDouble()).apply<RsqrtOp>();
  Value normal = create<MulOp>(builder, getLoc(), getInput(), inverse);
  return {create<MulOp>(builder, getLoc(), normal, getWeight())};
}

void RmsNormOp::compute(HostOperands operands, HostResults results) {
  const HostTensor &input = operands[0], &weight = operands[1];
  size_t size = weight.data.size();
  for (size_t start = 0; size && start < input.data.size(); start += size) {
    double mean = 0;
    for (size_t i = 0; i < size; ++i)
      mean += input.data[start + i] * input.data[start + i] / double(size);
    for (size_t i = 0; i < size; ++i)
      results[0].data[start + i] =
          input.data[start + i] / std::sqrt(mean + getEpsilon().convertToDouble()) * weight.data[i];
  }
}

//===- LrnOp -----------------------------------------------------------------------------------------------------===//

FailureOr<Type> LrnOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  if (failed(checkFloats(reject, input)))
    return failure();
  if (input.getRank() < 2 || int64_t(op.getSize()) < 1 || int64_t(op.getSize()) > maxWindowSize)
    return reject("has input ", input, " and size ", op.getSizeAttr(), ", expected [n, c, …] and a size from 1 to ",
                  maxWindowSize);
  return input;
}

/// The sum over channels is one over windows of [n, 1, c, places].
SmallVector<Value> LrnOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  if (input.getNumElements() == 0)
    return {buildZeros(builder, getLoc(), getInput())}; // in which no window fits
  int64_t samples = input.getDimSize(0), channels = input.getDimSize(1), size = getSize();
  int64_t places = input.getNumElements() / std::max<int64_t>(1, samples * channels);
  Expression x(builder, getLoc(), getInput());
  Value square = buildReshape(builder, getLoc(), x * x, {samples, 1, channels, places});
  auto sizes = [&](ArrayRef<int64_t> values) { return builder.getDenseI64ArrayAttr(values); };
  Value sum = create<AvgPoolOp>(builder, getLoc(), square, sizes({size, 1}), sizes({1, 1}),
                                sizes({(size - 1) / 2, 0, size / 2, 0}), sizes({}), UnitAttr(), UnitAttr(),
                                builder.getUnitAttr());
  Expression total(builder, getLoc(), buildReshape(builder, getLoc(), sum, input.getShape()));
  Expression base = total * (getAlpha().convertToDouble() / double(size)) + getBias().convertToDouble();
  return {x * base.with<PowOp>(base.number(-getBeta().convertToDouble()))};
}

void LrnOp::compute(HostOperands operands, HostResults results) {
  const HostTensor &input = operands[0];
  int64_t channels = input.shape[1], size = getSize();
  int64_t places = int64_t(input.data.size()) / std::max<int64_t>(1, input.shape[0] * channels);
  for (int64_t i = 0; i < int64_t(input.data.size()); ++i) {
    int64_t channel = i / places % channels;
    double sum = 0;
    for (int64_t other = std::max<int64_t>(0, channel - (size - 1) / 2);
         other <= std::min(channels - 1, channel + size / 2); ++other)
      sum += std::pow(input.data[i + (other - channel) * places], 2);
    double base = getBias().convertToDouble() + getAlpha().convertToDouble() / double(size) * sum;
    results[0].data[i] = input.data[i] / std::pow(base, getBeta().convertToDouble());
  }
}

} // namespace dg::ir
