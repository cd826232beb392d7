// SPDX-License-Identifier: Apache-2.0
// Ops that read or write at places given by integers.
#include "ir/ops/arrangement/IndexingOps.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/ShardingRules.h"
#include "ir/rules/TypeInference.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace dg::ir {

using Gradients = FailureOr<SmallVector<Value>>;

//===- What all share --------------------------------------------------------------------------------------------===//

template <typename Op> static LogicalResult checkIndices(std::optional<Location> location, RankedTensorType indices) {
  if (isa<IntegerType>(indices.getElementType()))
    return success();
  return reject<Op>(location, "has indices ", indices, ", expected integers");
}

/// `rows` is […, any], `indices` the same […] of integers.
template <typename Op>
static LogicalResult checkRows(std::optional<Location> location, RankedTensorType rows, RankedTensorType indices) {
  if (failed(checkIndices<Op>(location, indices)))
    return failure();
  if (rows.getRank() >= 1 && mayBeEqual(rows.getShape().drop_back(), indices.getShape()))
    return success();
  return reject<Op>(location, "has rows ", rows, " and indices ", indices, ", expected one index for each row");
}

/// The index at a place, or -1 with an error where it is outside of [0, bound).
static int64_t indexAt(Operation *op, const HostTensor &indices, int64_t place, int64_t bound) {
  double index = indices.data[place];
  if (index >= 0 && index < double(bound))
    return int64_t(index);
  op->emitOpError() << "found index " << index << " at place " << place << ", expected 0 to " << bound - 1;
  return -1;
}

/// An index has something to choose from.
template <typename Op> static LogicalResult checkClasses(std::optional<Location> location, int64_t classes) {
  if (classes != 0)
    return success();
  return reject<Op>(location, "has rows of 0 classes, expected at least one");
}

//===- EmbeddingOp -----------------------------------------------------------------------------------------------===//

LogicalResult EmbeddingOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                            SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto table = tensorOf(op.getTable()), indices = tensorOf(op.getIndices());
  if (failed(checkIndices<EmbeddingOp>(location, indices)))
    return failure();
  if (table.getRank() != 2)
    return reject<EmbeddingOp>(location, "has table ", table, ", expected [rows, width]");
  SmallVector<int64_t> shape(indices.getShape());
  shape.push_back(table.getDimSize(1));
  inferred.push_back(RankedTensorType::get(shape, table.getElementType()));
  return success();
}

Gradients EmbeddingOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  uint64_t rows = tensorOf(getTable()).getDimSize(0);
  return SmallVector<Value>{builder.create<EmbeddingGradOp>(getLoc(), grads[0], getIndices(), rows, PlaceAttr()),
                            Value()};
}

ShardingRule EmbeddingOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto indices = tensorOf(getIndices());
  for (int64_t dim = 0; dim < indices.getRank(); ++dim) {
    int32_t factor = rule.addFactor(indices.getDimSize(dim));
    rule.operands[1][dim].push_back(factor);
    rule.results[0][dim].push_back(factor);
  }
  int32_t width = rule.addFactor(tensorOf(getTable()).getDimSize(1));
  rule.operands[0][1].push_back(width);
  rule.results[0].back().push_back(width);
  return rule;
}

/// Only the rows that are read count.
OpCost EmbeddingOp::getCost() {
  auto result = tensorOf(getResult());
  return {0, 2.0 * result.getNumElements() * result.getElementTypeBitWidth() / 8};
}

IndexBound EmbeddingOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getTable()).getDimSize(0) : 0};
}

LogicalResult EmbeddingOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                    const RunScalars &) {
  int64_t width = rowSize(operands[0]);
  for (int64_t place = 0; place < operands[1].numElements(); ++place) {
    int64_t index = indexAt(*this, operands[1], place, operands[0].shape[0]);
    if (index < 0)
      return failure();
    std::copy_n(operands[0].data.begin() + index * width, width, results[0].data.begin() + place * width);
  }
  return success();
}

//===- EmbeddingGradOp -------------------------------------------------------------------------------------------===//

LogicalResult EmbeddingGradOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                                SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto grad = tensorOf(op.getGrad());
  if (failed(checkRows<EmbeddingGradOp>(location, grad, tensorOf(op.getIndices()))))
    return failure();
  inferred.push_back(RankedTensorType::get({int64_t(op.getRows()), grad.getShape().back()}, grad.getElementType()));
  return success();
}

/// Linear in the gradient.
Gradients EmbeddingGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{builder.create<EmbeddingOp>(getLoc(), grads[0], getIndices(), PlaceAttr()), Value()};
}

ShardingRule EmbeddingGradOp::getShardingRule() {
  int64_t numIndexDims = tensorOf(getIndices()).getRank();
  ShardingRule rule = leadingRule(*this, numIndexDims, {0, 1}, {});
  int32_t width = rule.addFactor(tensorOf(getGrad()).getShape().back());
  rule.operands[0][numIndexDims].push_back(width);
  rule.results[0][1].push_back(width);
  return rule;
}

OpCost EmbeddingGradOp::getCost() {
  return {double(tensorOf(getGrad()).getNumElements()), operandAndResultBytes(*this)};
}

IndexBound EmbeddingGradOp::getIndexBound(unsigned operand) { return {operand == 1 ? int64_t(getRows()) : 0}; }

LogicalResult EmbeddingGradOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                        const RunScalars &) {
  int64_t width = rowSize(operands[0]);
  for (int64_t place = 0; place < operands[1].numElements(); ++place) {
    int64_t index = indexAt(*this, operands[1], place, results[0].shape[0]);
    if (index < 0)
      return failure();
    for (int64_t i = 0; i < width; ++i)
      results[0].data[index * width + i] += operands[0].data[place * width + i];
  }
  return success();
}

//===- PickOp ----------------------------------------------------------------------------------------------------===//

LogicalResult PickOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                       SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto input = tensorOf(op.getInput());
  if (failed(checkRows<PickOp>(location, input, tensorOf(op.getIndices()))) ||
      failed(checkClasses<PickOp>(location, input.getShape().back())))
    return failure();
  inferred.push_back(RankedTensorType::get(input.getShape().drop_back(), input.getElementType()));
  return success();
}

Gradients PickOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  uint64_t classes = tensorOf(getInput()).getShape().back();
  return SmallVector<Value>{builder.create<PickGradOp>(getLoc(), grads[0], getIndices(), classes, PlaceAttr()),
                            Value()};
}

ShardingRule PickOp::getShardingRule() { return leadingRule(*this, tensorOf(getIndices()).getRank(), {0, 1}, {0}); }

OpCost PickOp::getCost() {
  auto result = tensorOf(getResult());
  return {0, 2.0 * result.getNumElements() * result.getElementTypeBitWidth() / 8};
}

IndexBound PickOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getInput()).getShape().back() : 0};
}

LogicalResult PickOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results, const RunScalars &) {
  int64_t classes = rowSize(operands[0]);
  for (int64_t place = 0; place < operands[1].numElements(); ++place) {
    int64_t index = indexAt(*this, operands[1], place, classes);
    if (index < 0)
      return failure();
    results[0].data[place] = operands[0].data[place * classes + index];
  }
  return success();
}

//===- PickGradOp ------------------------------------------------------------------------------------------------===//

LogicalResult PickGradOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                           SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto grad = tensorOf(op.getGrad()), indices = tensorOf(op.getIndices());
  if (failed(checkIndices<PickGradOp>(location, indices)) ||
      failed(checkClasses<PickGradOp>(location, int64_t(op.getClasses()))))
    return failure();
  if (!mayBeEqual(grad.getShape(), indices.getShape()))
    return reject<PickGradOp>(location, "has gradient ", grad, " and indices ", indices, ", expected equal shapes");
  SmallVector<int64_t> shape(grad.getShape());
  shape.push_back(int64_t(op.getClasses()));
  inferred.push_back(RankedTensorType::get(shape, grad.getElementType()));
  return success();
}

/// Linear in the gradient.
Gradients PickGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{builder.create<PickOp>(getLoc(), grads[0], getIndices(), PlaceAttr()), Value()};
}

ShardingRule PickGradOp::getShardingRule() { return leadingRule(*this, tensorOf(getGrad()).getRank(), {0, 1}, {0}); }

OpCost PickGradOp::getCost() { return {0, operandAndResultBytes(*this)}; }

IndexBound PickGradOp::getIndexBound(unsigned operand) { return {operand == 1 ? int64_t(getClasses()) : 0}; }

LogicalResult PickGradOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                   const RunScalars &) {
  int64_t classes = rowSize(results[0]);
  for (int64_t place = 0; place < operands[1].numElements(); ++place) {
    int64_t index = indexAt(*this, operands[1], place, classes);
    if (index < 0)
      return failure();
    results[0].data[place * classes + index] = operands[0].data[place];
  }
  return success();
}

//===- PickLogSoftmaxOp ------------------------------------------------------------------------------------------===//

LogicalResult PickLogSoftmaxOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                                 SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 2, inferred))
    return success();
  auto input = tensorOf(op.getInput());
  if (failed(checkRows<PickLogSoftmaxOp>(location, input, tensorOf(op.getIndices()))) ||
      failed(checkClasses<PickLogSoftmaxOp>(location, input.getShape().back())))
    return failure();
  inferred.assign(2, RankedTensorType::get(input.getShape().drop_back(), arithmeticType(input.getElementType())));
  return success();
}

/// Each element of a row has e^(x - logsumexp) of what comes back to the logsumexp, less what comes back to the result.
Gradients PickLogSoftmaxOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value grad = grads[0] ? grads[0] : buildZeros(builder, getLoc(), getResult()), weight;
  if (grads[1])
    weight = builder.create<SubOp>(getLoc(), grads[1], grad, PlaceAttr());
  else
    weight = builder.create<NegOp>(getLoc(), grad, PlaceAttr());
  return SmallVector<Value>{builder.create<PickLogSoftmaxGradOp>(getLoc(), grad, weight, getInput(), getIndices(),
                                                                 getLogsumexp(), /*overwrites=*/false, PlaceAttr()),
                            Value()};
}

ShardingRule PickLogSoftmaxOp::getShardingRule() {
  return leadingRule(*this, tensorOf(getIndices()).getRank(), {0, 1}, {0, 1});
}
OpCost PickLogSoftmaxOp::getCost() {
  return {5 * double(tensorOf(getInput()).getNumElements()), operandAndResultBytes(*this)};
}

IndexBound PickLogSoftmaxOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getInput()).getShape().back() : 0};
}

LogicalResult PickLogSoftmaxOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                         const RunScalars &) {
  int64_t classes = rowSize(operands[0]);
  for (int64_t place = 0; place < operands[1].numElements(); ++place) {
    int64_t index = indexAt(*this, operands[1], place, classes);
    if (index < 0)
      return failure();
    auto row = ArrayRef<double>(operands[0].data).slice(place * classes, classes);
    double largest = *std::max_element(row.begin(), row.end()), sum = 0;
    for (double x : row)
      sum += std::exp(x - largest);
    results[1].data[place] = largest + std::log(sum);
    results[0].data[place] = row[index] - results[1].data[place];
  }
  return success();
}

//===- PickLogSoftmaxGradOp --------------------------------------------------------------------------------------===//

LogicalResult PickLogSoftmaxGradOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                                     SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto input = tensorOf(op.getInput()), indices = tensorOf(op.getIndices());
  if (failed(checkRows<PickLogSoftmaxGradOp>(location, input, indices)) ||
      failed(checkClasses<PickLogSoftmaxGradOp>(location, input.getShape().back())))
    return failure();
  for (Value perRow : {op.getGrad(), op.getWeight(), op.getLogsumexp()})
    if (!mayBeEqual(tensorOf(perRow).getShape(), indices.getShape()) ||
        tensorOf(perRow).getElementType() != arithmeticType(input.getElementType()))
      return reject<PickLogSoftmaxGradOp>(location, "has gradient ", op.getGrad().getType(), ", weight ",
                                          op.getWeight().getType(), " and logsumexp ", op.getLogsumexp().getType(),
                                          " for rows ", input, ", expected one number for each row");
  inferred.push_back(input);
  return success();
}

ShardingRule PickLogSoftmaxGradOp::getShardingRule() {
  return leadingRule(*this, tensorOf(getIndices()).getRank(), {0, 1, 2, 3, 4}, {0});
}
OpCost PickLogSoftmaxGradOp::getCost() {
  return {4 * double(tensorOf(getInput()).getNumElements()), operandAndResultBytes(*this)};
}

IndexBound PickLogSoftmaxGradOp::getIndexBound(unsigned operand) {
  return {operand == 3 ? tensorOf(getInput()).getShape().back() : 0};
}

LogicalResult PickLogSoftmaxGradOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                             const RunScalars &) {
  int64_t classes = rowSize(operands[2]);
  for (int64_t place = 0; place < operands[3].numElements(); ++place) {
    int64_t index = indexAt(*this, operands[3], place, classes);
    if (index < 0)
      return failure();
    for (int64_t i = 0; i < classes; ++i)
      results[0].data[place * classes + i] =
          operands[1].data[place] * std::exp(operands[2].data[place * classes + i] - operands[4].data[place]);
    results[0].data[place * classes + index] += operands[0].data[place];
  }
  return success();
}

//===- CorrectOp -------------------------------------------------------------------------------------------------===//

LogicalResult CorrectOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                          SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto scores = tensorOf(op.getScores());
  if (failed(checkRows<CorrectOp>(location, scores, tensorOf(op.getIndices()))) ||
      failed(checkClasses<CorrectOp>(location, scores.getShape().back())))
    return failure();
  inferred.push_back(RankedTensorType::get(scores.getShape().drop_back(), scores.getElementType()));
  return success();
}

ShardingRule CorrectOp::getShardingRule() { return leadingRule(*this, tensorOf(getIndices()).getRank(), {0, 1}, {0}); }

OpCost CorrectOp::getCost() { return {double(tensorOf(getScores()).getNumElements()), operandAndResultBytes(*this)}; }

IndexBound CorrectOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getScores()).getShape().back() : 0};
}

LogicalResult CorrectOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                  const RunScalars &) {
  int64_t classes = rowSize(operands[0]);
  for (int64_t place = 0; place < operands[1].numElements(); ++place) {
    auto row = operands[0].data.begin() + place * classes;
    int64_t index = indexAt(*this, operands[1], place, classes);
    if (index < 0)
      return failure();
    results[0].data[place] = std::max_element(row, row + classes) - row == index;
  }
  return success();
}

//===- Definitions -----------------------------------------------------------------------------------------------===//

void DGDialect::addIndexingOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/arrangement/IndexingOps.cpp.inc"
      >();
}

} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/ops/arrangement/IndexingOps.cpp.inc"
