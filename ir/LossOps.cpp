// SPDX-License-Identifier: Apache-2.0
// Losses. Each is the mean over samples (dimension 0) of a loss per sample, which is itself a mean over the sample's
// positions.
#include "ir/LossOps.h"
#include "ir/ElementwiseOps.h"
#include "ir/Expression.h"
#include "ir/GradientBuilding.h"
#include "ir/HostTensorAccess.h"
#include "ir/IndexingOps.h"
#include "ir/MathOps.h"
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

//===- Losses of pairs of elements -------------------------------------------------------------------------------===//

template <typename Op>
static LogicalResult inferPairLoss(MLIRContext *context, std::optional<Location> location, ValueRange operands,
                                   SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, operands, 1, inferred))
    return success();
  auto prediction = tensorOf(operands[0]), target = tensorOf(operands[1]);
  if (prediction.getRank() < 1 || !mayBeEqual(prediction.getShape(), target.getShape()) ||
      prediction.getElementType() != target.getElementType())
    return reject<Op>(location, "has prediction ", prediction, " and target ", target,
                      ", expected equal types [samples, …]");
  inferred.push_back(RankedTensorType::get({}, prediction.getElementType()));
  return success();
}

/// The mean of `loss(prediction, target)` over all elements.
template <typename Loss>
static LogicalResult evaluatePairLoss(ArrayRef<HostTensor> operands, HostTensor &result, Loss loss) {
  size_t count = operands[0].data.size();
  for (size_t i = 0; i < count; ++i)
    result.data[0] += loss(operands[0].data[i], operands[1].data[i]) / double(count);
  return success();
}

/// What a loss of pairs shares with the others; such a loss has no accuracy.
#define DG_PAIR_LOSS(Op)                                                                                               \
  LogicalResult Op::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,               \
                                     SmallVectorImpl<Type> &inferred) {                                                \
    return inferPairLoss<Op>(context, location, op.getOperands(), inferred);                                           \
  }                                                                                                                    \
  Value Op::buildPerSampleAccuracy(OpBuilder &) { return {}; }
DG_PAIR_LOSS(MseOp)
DG_PAIR_LOSS(L1Op)
DG_PAIR_LOSS(BceWithLogitsOp)
DG_PAIR_LOSS(KlDivOp)
#undef DG_PAIR_LOSS

LogicalResult HuberOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                        SmallVectorImpl<Type> &inferred) {
  if (!(op.getDelta().convertToDouble() > 0))
    return reject<HuberOp>(location, "has delta ", op.getDeltaAttr(), ", expected a number above 0");
  return inferPairLoss<HuberOp>(context, location, op.getOperands(), inferred);
}
Value HuberOp::buildPerSampleAccuracy(OpBuilder &) { return {}; }

LogicalResult SmoothL1Op::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                           SmallVectorImpl<Type> &inferred) {
  if (!(op.getBeta().convertToDouble() > 0))
    return reject<SmoothL1Op>(location, "has beta ", op.getBetaAttr(),
                              ", expected a number above 0: dg.l1 is its limit");
  return inferPairLoss<SmoothL1Op>(context, location, op.getOperands(), inferred);
}
Value SmoothL1Op::buildPerSampleAccuracy(OpBuilder &) { return {}; }

Value MseOp::buildPerSample(OpBuilder &builder) {
  Value difference = builder.create<SubOp>(getLoc(), getPrediction(), getTarget(), PlaceAttr());
  Value square = builder.create<MulOp>(getLoc(), difference, difference, PlaceAttr());
  return buildSampleMean(builder, getLoc(), square, 1);
}

LogicalResult MseOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results, const RunScalars &) {
  return evaluatePairLoss(operands, results[0], [](double x, double y) { return (x - y) * (x - y); });
}

Value L1Op::buildPerSample(OpBuilder &builder) {
  Expression x(builder, getLoc(), getPrediction()), y(builder, getLoc(), getTarget());
  return buildSampleMean(builder, getLoc(), (x - y).apply<AbsOp>(), 1);
}

LogicalResult L1Op::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results, const RunScalars &) {
  return evaluatePairLoss(operands, results[0], [](double x, double y) { return std::abs(x - y); });
}

/// With c the distance d held within ±delta, c · (d - c/2) is d²/2 inside and delta · (|d| - delta/2) outside.
static Value buildHuber(OpBuilder &builder, Location loc, Value prediction, Value target, double delta, double factor) {
  Expression x(builder, loc, prediction), y(builder, loc, target), distance = x - y;
  Expression held = distance.apply<ClipOp>(builder.getF64FloatAttr(-delta), builder.getF64FloatAttr(delta));
  return buildSampleMean(builder, loc, held * (distance - held * 0.5), factor);
}

static double huberOf(double distance, double delta) {
  distance = std::abs(distance);
  return distance <= delta ? distance * distance / 2 : delta * (distance - delta / 2);
}

Value HuberOp::buildPerSample(OpBuilder &builder) {
  return buildHuber(builder, getLoc(), getPrediction(), getTarget(), getDelta().convertToDouble(), 1);
}

LogicalResult HuberOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                const RunScalars &) {
  double delta = getDelta().convertToDouble();
  return evaluatePairLoss(operands, results[0], [&](double x, double y) { return huberOf(x - y, delta); });
}

Value SmoothL1Op::buildPerSample(OpBuilder &builder) {
  double beta = getBeta().convertToDouble();
  return buildHuber(builder, getLoc(), getPrediction(), getTarget(), beta, 1 / beta);
}

LogicalResult SmoothL1Op::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                   const RunScalars &) {
  double beta = getBeta().convertToDouble();
  return evaluatePairLoss(operands, results[0], [&](double x, double y) { return huberOf(x - y, beta) / beta; });
}

Value BceWithLogitsOp::buildPerSample(OpBuilder &builder) {
  Expression x(builder, getLoc(), getPrediction()), y(builder, getLoc(), getTarget());
  return buildSampleMean(builder, getLoc(), x.apply<SoftplusOp>() - x * y, 1);
}

LogicalResult BceWithLogitsOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                        const RunScalars &) {
  return evaluatePairLoss(operands, results[0], [](double x, double y) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))) - x * y;
  });
}

/// 0 · log 0 is 0: the smallest float keeps the logarithm finite.
constexpr double smallestProbability = 1e-37;

Value KlDivOp::buildPerSample(OpBuilder &builder) {
  Expression x(builder, getLoc(), getPrediction()), y(builder, getLoc(), getTarget());
  Expression logarithm = y.apply<ClipOp>(builder.getF64FloatAttr(smallestProbability), FloatAttr()).apply<LogOp>();
  return buildSampleMean(builder, getLoc(), y * (logarithm - x), 1);
}

LogicalResult KlDivOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                const RunScalars &) {
  return evaluatePairLoss(operands, results[0],
                          [](double x, double y) { return y * (std::log(std::max(y, smallestProbability)) - x); });
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
