// SPDX-License-Identifier: Apache-2.0
// Ops that read or write at places given by integers.
#include "ir/ops/arrangement/IndexingOps.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/Expression.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/ShardingRules.h"
#include "ir/rules/TypeInference.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace dg::ir {

//===- What all share --------------------------------------------------------------------------------------------===//

static LogicalResult checkIndices(const Rejection &reject, RankedTensorType indices) {
  return isa<IntegerType>(indices.getElementType()) ? success()
                                                    : reject("has indices ", indices, ", expected integers");
}

/// `rows` is […, any], `indices` the same […] of integers.
static LogicalResult checkRows(const Rejection &reject, RankedTensorType rows, RankedTensorType indices) {
  if (failed(checkIndices(reject, indices)))
    return failure();
  if (rows.getRank() >= 1 && mayBeEqual(rows.getShape().drop_back(), indices.getShape()))
    return success();
  return reject("has rows ", rows, " and indices ", indices, ", expected one index for each row");
}

/// Calls `visit(place, index)` for each of the indices, one after the other; fails at one outside of [0, bound).
template <typename Visit>
static LogicalResult forEachPlace(Operation *op, const HostTensor &indices, int64_t bound, Visit visit) {
  for (auto [place, index] : llvm::enumerate(indices.data)) {
    if (!(index >= 0 && index < double(bound)))
      return op->emitOpError() << "found index " << index << " at place " << place << ", expected 0 to " << bound - 1;
    visit(int64_t(place), int64_t(index));
  }
  return success();
}

/// An index has something to choose from.
static LogicalResult checkClasses(const Rejection &reject, int64_t classes) {
  return classes != 0 ? success() : reject("has rows of 0 classes, expected at least one");
}

/// Rows of scores for classes, and the number of a class for each.
static LogicalResult checkScores(const Rejection &reject, RankedTensorType scores, Value indices) {
  if (failed(checkRows(reject, scores, tensorOf(indices))))
    return failure();
  return checkClasses(reject, scores.getShape().back());
}

//===- EmbeddingOp -----------------------------------------------------------------------------------------------===//

FailureOr<Type> EmbeddingOp::inferType(Adaptor op, const Rejection &reject) {
  auto table = tensorOf(op.getTable()), indices = tensorOf(op.getIndices());
  if (failed(checkIndices(reject, indices)))
    return failure();
  if (table.getRank() != 2)
    return reject("has table ", table, ", expected [rows, width]");
  const int64_t rows = table.isDynamicDim(0) ? INT64_MAX : table.getDimSize(0);
  if (auto row = op.getPadding(); row && (int64_t(*row) < 0 || int64_t(*row) >= rows))
    return reject("has padding ", int64_t(*row), " and table ", table, ", expected one of its rows, from 0");
  SmallVector<int64_t> shape(indices.getShape());
  shape.push_back(table.getDimSize(1));
  return RankedTensorType::get(shape, table.getElementType());
}

Gradients EmbeddingOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  uint64_t rows = tensorOf(getTable()).getDimSize(0);
  Value grad = grads[0];
  if (std::optional<uint64_t> row = getPadding()) {
    auto indices = tensorOf(getIndices());
    SmallVector<int64_t> shape(indices.getShape());
    shape.push_back(1);
    Value number = buildFilled(builder, getLoc(), RankedTensorType::get({}, indices.getElementType()), double(*row));
    Value isTrained = create<CompareOp>(builder, getLoc(), getIndices(), number, "ne");
    grad = create<SelectOp>(builder, getLoc(), buildReshape(builder, getLoc(), isTrained, shape), grad,
                            Expression(builder, getLoc(), grad).number(0));
  }
  return SmallVector<Value>{create<EmbeddingGradOp>(builder, getLoc(), grad, getIndices(), rows), Value()};
}

ShardingRule EmbeddingOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto indices = tensorOf(getIndices());
  for (int64_t dim = 0; dim < indices.getRank(); ++dim)
    rule.tie(indices.getDimSize(dim), {{1, dim}}, dim);
  rule.tie(tensorOf(getTable()).getDimSize(1), {{0, 1}}, indices.getRank());
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

LogicalResult EmbeddingOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  int64_t width = rowSize(operands[0]);
  return forEachPlace(*this, operands[1], operands[0].shape[0], [&](int64_t place, int64_t index) {
    std::copy_n(operands[0].data.begin() + index * width, width, results[0].data.begin() + place * width);
  });
}

//===- EmbeddingGradOp -------------------------------------------------------------------------------------------===//

FailureOr<Type> EmbeddingGradOp::inferType(Adaptor op, const Rejection &reject) {
  auto grad = tensorOf(op.getGrad());
  if (failed(checkRows(reject, grad, tensorOf(op.getIndices()))))
    return failure();
  return RankedTensorType::get({int64_t(op.getRows()), grad.getShape().back()}, grad.getElementType());
}

/// Linear in the gradient.
Gradients EmbeddingGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<EmbeddingOp>(builder, getLoc(), grads[0], getIndices(), IntegerAttr()), Value()};
}

ShardingRule EmbeddingGradOp::getShardingRule() {
  int64_t numIndexDims = tensorOf(getIndices()).getRank();
  ShardingRule rule = leadingRule(*this, numIndexDims, {0, 1}, {});
  rule.tie(tensorOf(getGrad()).getShape().back(), {{0, numIndexDims}}, 1);
  return rule;
}

IndexBound EmbeddingGradOp::getIndexBound(unsigned operand) { return {operand == 1 ? int64_t(getRows()) : 0}; }

LogicalResult EmbeddingGradOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  int64_t width = rowSize(operands[0]);
  return forEachPlace(*this, operands[1], results[0].shape[0], [&](int64_t place, int64_t index) {
    for (int64_t i = 0; i < width; ++i)
      results[0].data[index * width + i] += operands[0].data[place * width + i];
  });
}

//===- PickOp ----------------------------------------------------------------------------------------------------===//

FailureOr<Type> PickOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  if (failed(checkScores(reject, input, op.getIndices())))
    return failure();
  return RankedTensorType::get(input.getShape().drop_back(), input.getElementType());
}

Gradients PickOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  uint64_t classes = tensorOf(getInput()).getShape().back();
  return SmallVector<Value>{create<PickGradOp>(builder, getLoc(), grads[0], getIndices(), classes), Value()};
}

ShardingRule PickOp::getShardingRule() { return leadingRule(*this, tensorOf(getIndices()).getRank(), {0, 1}, {0}); }

OpCost PickOp::getCost() {
  auto result = tensorOf(getResult());
  return {0, 2.0 * result.getNumElements() * result.getElementTypeBitWidth() / 8};
}

IndexBound PickOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getInput()).getShape().back() : 0};
}

LogicalResult PickOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  int64_t classes = rowSize(operands[0]);
  return forEachPlace(*this, operands[1], classes, [&](int64_t place, int64_t index) {
    results[0].data[place] = operands[0].data[place * classes + index];
  });
}

//===- PickGradOp ------------------------------------------------------------------------------------------------===//

FailureOr<Type> PickGradOp::inferType(Adaptor op, const Rejection &reject) {
  auto grad = tensorOf(op.getGrad()), indices = tensorOf(op.getIndices());
  if (failed(checkIndices(reject, indices)) || failed(checkClasses(reject, int64_t(op.getClasses()))))
    return failure();
  if (!mayBeEqual(grad.getShape(), indices.getShape()))
    return reject("has gradient ", grad, " and indices ", indices, ", expected equal shapes");
  SmallVector<int64_t> shape(grad.getShape());
  shape.push_back(int64_t(op.getClasses()));
  return RankedTensorType::get(shape, grad.getElementType());
}

/// Linear in the gradient.
Gradients PickGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<PickOp>(builder, getLoc(), grads[0], getIndices()), Value()};
}

ShardingRule PickGradOp::getShardingRule() { return leadingRule(*this, tensorOf(getGrad()).getRank(), {0, 1}, {0}); }

OpCost PickGradOp::getCost() { return {0, operandAndResultBytes(*this)}; }

IndexBound PickGradOp::getIndexBound(unsigned operand) { return {operand == 1 ? int64_t(getClasses()) : 0}; }

LogicalResult PickGradOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  int64_t classes = rowSize(results[0]);
  return forEachPlace(*this, operands[1], classes, [&](int64_t place, int64_t index) {
    results[0].data[place * classes + index] = operands[0].data[place];
  });
}

//===- PickLogSoftmaxOp ------------------------------------------------------------------------------------------===//

FailureOr<SmallVector<Type>> PickLogSoftmaxOp::inferTypes(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  if (failed(checkScores(reject, input, op.getIndices())))
    return failure();
  return SmallVector<Type>(2,
                           RankedTensorType::get(input.getShape().drop_back(), arithmeticType(input.getElementType())));
}

/// Each element of a row has e^(x - logsumexp) of what comes back to the logsumexp, less what comes back to the result.
Gradients PickLogSoftmaxOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value grad = grads[0] ? grads[0] : buildZeros(builder, getLoc(), getResult()), weight;
  if (grads[1])
    weight = create<SubOp>(builder, getLoc(), grads[1], grad);
  else
    weight = create<NegOp>(builder, getLoc(), grad);
  return SmallVector<Value>{create<PickLogSoftmaxGradOp>(builder, getLoc(), grad, weight, getInput(), getIndices(),
                                                         getLogsumexp(), /*overwrites=*/false),
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

LogicalResult PickLogSoftmaxOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  int64_t classes = rowSize(operands[0]);
  return forEachPlace(*this, operands[1], classes, [&](int64_t place, int64_t index) {
    auto row = ArrayRef<double>(operands[0].data).slice(place * classes, classes);
    double largest = *std::max_element(row.begin(), row.end()), sum = 0;
    for (double x : row)
      sum += std::exp(x - largest);
    results[1].data[place] = largest + std::log(sum);
    results[0].data[place] = row[index] - results[1].data[place];
  });
}

//===- PickLogSoftmaxGradOp --------------------------------------------------------------------------------------===//

FailureOr<Type> PickLogSoftmaxGradOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), indices = tensorOf(op.getIndices());
  if (failed(checkScores(reject, input, op.getIndices())))
    return failure();
  for (Value perRow : {op.getGrad(), op.getWeight(), op.getLogsumexp()})
    if (!mayBeEqual(tensorOf(perRow).getShape(), indices.getShape()) ||
        tensorOf(perRow).getElementType() != arithmeticType(input.getElementType()))
      return reject("has gradient ", op.getGrad().getType(), ", weight ", op.getWeight().getType(), " and logsumexp ",
                    op.getLogsumexp().getType(), " for rows ", input, ", expected one number for each row");
  return input;
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

LogicalResult PickLogSoftmaxGradOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  int64_t classes = rowSize(operands[2]);
  return forEachPlace(*this, operands[3], classes, [&](int64_t place, int64_t index) {
    for (int64_t i = 0; i < classes; ++i)
      results[0].data[place * classes + i] =
          operands[1].data[place] * std::exp(operands[2].data[place * classes + i] - operands[4].data[place]);
    results[0].data[place * classes + index] += operands[0].data[place];
  });
}

//===- CorrectOp -------------------------------------------------------------------------------------------------===//

FailureOr<Type> CorrectOp::inferType(Adaptor op, const Rejection &reject) {
  auto scores = tensorOf(op.getScores());
  if (failed(checkScores(reject, scores, op.getIndices())))
    return failure();
  return RankedTensorType::get(scores.getShape().drop_back(), scores.getElementType());
}

ShardingRule CorrectOp::getShardingRule() { return leadingRule(*this, tensorOf(getIndices()).getRank(), {0, 1}, {0}); }

OpCost CorrectOp::getCost() { return {double(tensorOf(getScores()).getNumElements()), operandAndResultBytes(*this)}; }

IndexBound CorrectOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getScores()).getShape().back() : 0};
}

LogicalResult CorrectOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  int64_t classes = rowSize(operands[0]);
  return forEachPlace(*this, operands[1], classes, [&](int64_t place, int64_t index) {
    auto row = operands[0].data.begin() + place * classes;
    results[0].data[place] = std::max_element(row, row + classes) - row == index;
  });
}

} // namespace dg::ir

#define DG_OPS "ir/ops/arrangement/IndexingOps.cpp.inc"
#define DG_ADD_OPS addIndexingOps
#include "ir/ops/Family.inc"
