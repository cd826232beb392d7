// SPDX-License-Identifier: Apache-2.0
// Softmax and layer norm: ops that look at the whole last dimension of each row.
#include "ir/NormalizationOps.h"
#include "ir/HostTensorAccess.h"
#include "ir/ShardingRules.h"
#include "ir/TypeInference.h"

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
  if (type.getRank() < 1)
    return reject<Op>(location, "has operand ", type, ", expected at least one dimension");
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

//===- SoftmaxOp -------------------------------------------------------------------------------------------------===//

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                          SmallVectorImpl<Type> &inferred) {
  if (failed(inferRowwise<SoftmaxOp>(context, location, op.getOperands(), inferred)))
    return failure();
  auto type = dyn_cast<RankedTensorType>(inferred[0]);
  if (type && op.getCausal() && (type.getRank() < 2 || !mayBeEqual(type.getShape().end()[-2], type.getShape().back())))
    return reject<SoftmaxOp>(location, "is causal over ", type,
                             ", expected last dimensions of equal size: (token, seen token)");
  return success();
}

Gradients SoftmaxOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  // Masked elements have y = 0, so the mask is in the output already.
  return SmallVector<Value>{builder.create<SoftmaxGradOp>(getLoc(), grads[0], getResult(), getScale(), PlaceAttr())};
}

/// A causal row must know its place among the tokens, so they stay whole too.
ShardingRule SoftmaxOp::getShardingRule() { return rowwiseRule(*this, getCausal() ? 2 : 1); }
OpCost SoftmaxOp::getCost() { return costPerElement(*this, 5); }

LogicalResult SoftmaxOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                  const RunScalars &) {
  int64_t size = rowSize(operands[0]);
  double scale = getScale().convertToDouble();
  for (int64_t row = 0; row < numRows(operands[0]); ++row) {
    const double *in = operands[0].data.data() + row * size;
    double *out = results[0].data.data() + row * size;
    int64_t numSeen = getCausal() ? row % size + 1 : size;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t i = 0; i < numSeen; ++i)
      largest = std::max(largest, scale * in[i]);
    for (int64_t i = 0; i < numSeen; ++i)
      sum += out[i] = std::exp(scale * in[i] - largest);
    for (int64_t i = 0; i < numSeen; ++i)
      out[i] /= sum;
  }
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

//===- LogSoftmaxOp ----------------------------------------------------------------------------------------------===//

LogicalResult LogSoftmaxOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                             SmallVectorImpl<Type> &inferred) {
  return inferRowwise<LogSoftmaxOp>(context, location, op.getOperands(), inferred);
}

Gradients LogSoftmaxOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{builder.create<LogSoftmaxGradOp>(getLoc(), grads[0], getResult(), PlaceAttr())};
}

ShardingRule LogSoftmaxOp::getShardingRule() { return rowwiseRule(*this, 1); }
OpCost LogSoftmaxOp::getCost() { return costPerElement(*this, 5); }

LogicalResult LogSoftmaxOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                     const RunScalars &) {
  int64_t size = rowSize(operands[0]);
  for (int64_t row = 0; row < numRows(operands[0]); ++row) {
    const double *in = operands[0].data.data() + row * size;
    double largest = *std::max_element(in, in + size), sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sum += std::exp(in[i] - largest);
    for (int64_t i = 0; i < size; ++i)
      results[0].data[row * size + i] = in[i] - largest - std::log(sum);
  }
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

//===- LayerNormOp -----------------------------------------------------------------------------------------------===//

/// Weight and bias have one element for each of the input's last dimension.
template <typename Op>
static LogicalResult checkRowParameter(std::optional<Location> location, StringRef name, RankedTensorType parameter,
                                       RankedTensorType input) {
  bool isGood = input.getRank() >= 1 && parameter.getRank() == 1 &&
                mayBeEqual(parameter.getDimSize(0), input.getShape().back()) &&
                parameter.getElementType() == input.getElementType();
  return isGood ? success()
                : reject<Op>(location, "has ", name, " ", parameter, " for input ", input,
                             ", expected one element for each of the input's last dimension");
}

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                            SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto input = tensorOf(op.getInput());
  if (failed(checkRowParameter<LayerNormOp>(location, "weight", tensorOf(op.getWeight()), input)) ||
      failed(checkRowParameter<LayerNormOp>(location, "bias", tensorOf(op.getBias()), input)))
    return failure();
  inferred.push_back(input);
  return success();
}

Gradients LayerNormOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  auto op = builder.create<LayerNormGradOp>(getLoc(), grads[0], getInput(), getWeight(), getEpsilon(), PlaceAttr());
  return SmallVector<Value>(op->getResults());
}

ShardingRule LayerNormOp::getShardingRule() { return leadingRule(*this, tensorOf(getInput()).getRank() - 1, {0}, {0}); }
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
  int64_t size = rowSize(operands[0]);
  for (int64_t row = 0; row < numRows(operands[0]); ++row) {
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
  if (!mayBeEqual(grad.getShape(), input.getShape()))
    return reject<LayerNormGradOp>(location, "has gradient ", grad, " for input ", input, ", expected equal types");
  if (failed(checkRowParameter<LayerNormGradOp>(location, "weight", weight, input)))
    return failure();
  inferred.append({input, weight, weight});
  return success();
}

/// The gradients of weight and bias are sums over rows: partial where the rows are cut.
ShardingRule LayerNormGradOp::getShardingRule() {
  return leadingRule(*this, tensorOf(getInput()).getRank() - 1, {0, 1}, {0});
}
OpCost LayerNormGradOp::getCost() { return costPerElement(*this, 16); }

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
#include "ir/NormalizationOps.cpp.inc"
      >();
}

} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/NormalizationOps.cpp.inc"
