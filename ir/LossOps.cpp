// SPDX-License-Identifier: Apache-2.0
// Losses. Each is the mean over samples (dimension 0) of a loss per sample, which is itself a mean over the sample's
// positions.
#include "ir/LossOps.h"
#include "ir/ElementwiseOps.h"
#include "ir/GradientBuilding.h"
#include "ir/HostTensorAccess.h"
#include "ir/IndexingOps.h"
#include "ir/NormalizationOps.h"
#include "ir/ShapeOps.h"
#include "ir/TypeInference.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

//===- What all share --------------------------------------------------------------------------------------------===//

/// The scale of `factor` times the mean over a sample's positions: [samples, …] becomes [samples].
static Value buildSampleMean(OpBuilder &builder, Location loc, Value value, double factor) {
  auto type = tensorOf(value);
  int64_t samples = type.getDimSize(0), positions = samples ? type.getNumElements() / samples : 1;
  if (type.getRank() > 1) {
    const int64_t positionDim[] = {1};
    value = buildReshape(builder, loc, value, {samples, positions});
    value = builder.create<ReduceSumOp>(loc, value, positionDim, /*keep=*/false, PlaceAttr());
  }
  return factor == positions ? value : buildScale(builder, loc, value, factor / positions);
}

/// Prediction […, classes] with at least one dimension of samples in front, target […] of integers.
template <typename Op>
static LogicalResult inferClassLoss(MLIRContext *context, std::optional<Location> location, ValueRange operands,
                                    SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, operands, 1, inferred))
    return success();
  auto prediction = tensorOf(operands[0]), target = tensorOf(operands[1]);
  if (prediction.getRank() < 2 || !isa<IntegerType>(target.getElementType()) ||
      !mayBeEqual(prediction.getShape().drop_back(), target.getShape()))
    return reject<Op>(location, "has prediction ", prediction, " and target ", target,
                      ", expected [samples, …, classes] and integers of shape [samples, …]");
  inferred.push_back(RankedTensorType::get({}, prediction.getElementType()));
  return success();
}

static Value buildNll(OpBuilder &builder, Location loc, Value logProbabilities, Value target) {
  Value picked = builder.create<PickOp>(loc, logProbabilities, target, PlaceAttr());
  return buildSampleMean(builder, loc, picked, -1);
}

static Value buildAccuracy(OpBuilder &builder, Location loc, Value scores, Value target) {
  Value correct = builder.create<CorrectOp>(loc, scores, target, PlaceAttr());
  return buildSampleMean(builder, loc, correct, 1);
}

/// Minus the mean of `logProbability(row, class)` over all rows.
template <typename LogProbability>
static LogicalResult evaluateClassLoss(Operation *op, const HostTensor &prediction, const HostTensor &target,
                                       HostTensor &result, LogProbability logProbability) {
  int64_t classes = rowSize(prediction), rows = numRows(prediction);
  for (int64_t row = 0; row < rows; ++row) {
    double index = target.data[row];
    if (index < 0 || index >= double(classes))
      return op->emitOpError() << "found class " << index << " at place " << row << ", expected 0 to " << classes - 1;
    auto scores = ArrayRef<double>(prediction.data).slice(row * classes, classes);
    result.data[0] -= logProbability(scores, int64_t(index)) / rows;
  }
  return success();
}

//===- MseOp -----------------------------------------------------------------------------------------------------===//

LogicalResult MseOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                      SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto prediction = tensorOf(op.getPrediction()), target = tensorOf(op.getTarget());
  if (prediction.getRank() < 1 || !mayBeEqual(prediction.getShape(), target.getShape()) ||
      prediction.getElementType() != target.getElementType())
    return reject<MseOp>(location, "has prediction ", prediction, " and target ", target,
                         ", expected equal types [samples, …]");
  inferred.push_back(RankedTensorType::get({}, prediction.getElementType()));
  return success();
}

Value MseOp::buildPerSample(OpBuilder &builder) {
  Value difference = builder.create<SubOp>(getLoc(), getPrediction(), getTarget(), PlaceAttr());
  Value square = builder.create<MulOp>(getLoc(), difference, difference, PlaceAttr());
  return buildSampleMean(builder, getLoc(), square, 1);
}

Value MseOp::buildPerSampleAccuracy(OpBuilder &) { return {}; }

LogicalResult MseOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results, const RunScalars &) {
  size_t count = operands[0].data.size();
  for (size_t i = 0; i < count; ++i)
    results[0].data[0] += std::pow(operands[0].data[i] - operands[1].data[i], 2) / count;
  return success();
}

//===- NllOp -----------------------------------------------------------------------------------------------------===//

LogicalResult NllOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                      SmallVectorImpl<Type> &inferred) {
  return inferClassLoss<NllOp>(context, location, op.getOperands(), inferred);
}

Value NllOp::buildPerSample(OpBuilder &builder) { return buildNll(builder, getLoc(), getPrediction(), getTarget()); }

Value NllOp::buildPerSampleAccuracy(OpBuilder &builder) {
  return buildAccuracy(builder, getLoc(), getPrediction(), getTarget());
}

LogicalResult NllOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results, const RunScalars &) {
  return evaluateClassLoss(*this, operands[0], operands[1], results[0],
                           [](ArrayRef<double> row, int64_t index) { return row[index]; });
}

//===- CrossEntropyOp --------------------------------------------------------------------------------------------===//

LogicalResult CrossEntropyOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                               SmallVectorImpl<Type> &inferred) {
  return inferClassLoss<CrossEntropyOp>(context, location, op.getOperands(), inferred);
}

Value CrossEntropyOp::buildPerSample(OpBuilder &builder) {
  Value logProbabilities = builder.create<LogSoftmaxOp>(getLoc(), getPrediction(), PlaceAttr());
  return buildNll(builder, getLoc(), logProbabilities, getTarget());
}

Value CrossEntropyOp::buildPerSampleAccuracy(OpBuilder &builder) {
  return buildAccuracy(builder, getLoc(), getPrediction(), getTarget());
}

LogicalResult CrossEntropyOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                       const RunScalars &) {
  return evaluateClassLoss(*this, operands[0], operands[1], results[0], [](ArrayRef<double> row, int64_t index) {
    double largest = *llvm::max_element(row), sum = 0;
    for (double score : row)
      sum += std::exp(score - largest);
    return row[index] - largest - std::log(sum);
  });
}

//===- Definitions -----------------------------------------------------------------------------------------------===//

void DGDialect::addLossOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/LossOps.cpp.inc"
      >();
}

} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/LossOps.cpp.inc"
