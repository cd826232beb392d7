// SPDX-License-Identifier: Apache-2.0
// Losses. Each is the mean over samples (dimension 0) of a loss per sample, which is itself a mean over the sample's
// positions.
#include "ir/ops/training/LossOps.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/Expression.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/IndexingOps.h"
#include "ir/ops/arrangement/OrderOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/ops/reduction/NormalizationOps.h"
#include "ir/ops/structure/LiteralOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/TypeInference.h"

#include <cmath>
#include <numeric>

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
    value = create<ReduceSumOp>(builder, loc, value, positionDim, /*keep=*/false);
  }
  return factor == positions ? value : buildScale(builder, loc, value, factor / positions);
}

/// The sum over a sample's positions: [samples, …] becomes [samples].
static Value buildSampleSum(OpBuilder &builder, Location loc, Value value) {
  int64_t samples = tensorOf(value).getDimSize(0), numElements = tensorOf(value).getNumElements();
  return buildSampleMean(builder, loc, value, samples ? double(numElements) / double(samples) : 1);
}

//===- Losses of pairs of elements -------------------------------------------------------------------------------===//

static FailureOr<Type> inferPairLoss(const Rejection &reject, ValueRange operands) {
  auto prediction = tensorOf(operands[0]), target = tensorOf(operands[1]);
  if (prediction.getRank() < 1 || !mayBeEqual(prediction.getShape(), target.getShape()) ||
      prediction.getElementType() != target.getElementType())
    return reject("has prediction ", prediction, " and target ", target, ", expected equal types [samples, …]");
  if (!isa<FloatType>(prediction.getElementType()))
    return reject("has prediction ", prediction, ", expected floats (dg.cast makes them)");
  return RankedTensorType::get({}, prediction.getElementType());
}

/// The mean of `loss(prediction, target)` over all elements.
template <typename Loss> static void evaluatePairLoss(ArrayRef<HostTensor> operands, HostTensor &result, Loss loss) {
  size_t count = operands[0].data.size();
  for (size_t i = 0; i < count; ++i)
    result.data[0] += loss(operands[0].data[i], operands[1].data[i]) / double(count);
}

/// Losses of pairs infer alike.
#define DG_PAIR_LOSS(Op)                                                                                               \
  FailureOr<Type> Op::inferType(Adaptor op, const Rejection &reject) { return inferPairLoss(reject, op.getOperands()); }
DG_PAIR_LOSS(MseOp)
DG_PAIR_LOSS(L1Op)
DG_PAIR_LOSS(BceWithLogitsOp)
DG_PAIR_LOSS(KlDivOp)
#undef DG_PAIR_LOSS

FailureOr<Type> HuberOp::inferType(Adaptor op, const Rejection &reject) {
  if (!(op.getDelta().convertToDouble() > 0))
    return reject("has delta ", op.getDeltaAttr(), ", expected a number above 0");
  return inferPairLoss(reject, op.getOperands());
}

FailureOr<Type> SmoothL1Op::inferType(Adaptor op, const Rejection &reject) {
  if (!(op.getBeta().convertToDouble() > 0))
    return reject("has beta ", op.getBetaAttr(), ", expected a number above 0: dg.l1 is its limit");
  return inferPairLoss(reject, op.getOperands());
}

/// How far predictions are off, for losses that compare numbers.
static SampleFacts buildErrors(OpBuilder &builder, Location loc, Value prediction, Value target) {
  Expression x(builder, loc, prediction), y(builder, loc, target), distance = x - y;
  SampleFacts facts;
  facts.square = buildSampleMean(builder, loc, distance * distance, 1);
  facts.absolute = buildSampleMean(builder, loc, distance.apply<AbsOp>(), 1);
  return facts;
}
#define DG_ERROR_LOSS(Op)                                                                                              \
  SampleFacts Op::buildFacts(OpBuilder &builder) {                                                                     \
    return buildErrors(builder, getLoc(), getPrediction(), getTarget());                                               \
  }
DG_ERROR_LOSS(MseOp)
DG_ERROR_LOSS(L1Op)
DG_ERROR_LOSS(HuberOp)
DG_ERROR_LOSS(SmoothL1Op)
#undef DG_ERROR_LOSS

SampleMeasure MseOp::buildPerSample(OpBuilder &builder) {
  Value difference = create<SubOp>(builder, getLoc(), getPrediction(), getTarget());
  Value square = create<MulOp>(builder, getLoc(), difference, difference);
  return {buildSampleMean(builder, getLoc(), square, 1), {}};
}

void MseOp::compute(HostOperands operands, HostResults results) {
  evaluatePairLoss(operands, results[0], [](double x, double y) { return (x - y) * (x - y); });
}

SampleMeasure L1Op::buildPerSample(OpBuilder &builder) {
  Expression x(builder, getLoc(), getPrediction()), y(builder, getLoc(), getTarget());
  return {buildSampleMean(builder, getLoc(), (x - y).apply<AbsOp>(), 1), {}};
}

void L1Op::compute(HostOperands operands, HostResults results) {
  evaluatePairLoss(operands, results[0], [](double x, double y) { return std::abs(x - y); });
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

SampleMeasure HuberOp::buildPerSample(OpBuilder &builder) {
  return {buildHuber(builder, getLoc(), getPrediction(), getTarget(), getDelta().convertToDouble(), 1), {}};
}

void HuberOp::compute(HostOperands operands, HostResults results) {
  double delta = getDelta().convertToDouble();
  evaluatePairLoss(operands, results[0], [&](double x, double y) { return huberOf(x - y, delta); });
}

SampleMeasure SmoothL1Op::buildPerSample(OpBuilder &builder) {
  double beta = getBeta().convertToDouble();
  return {buildHuber(builder, getLoc(), getPrediction(), getTarget(), beta, 1 / beta), {}};
}

void SmoothL1Op::compute(HostOperands operands, HostResults results) {
  double beta = getBeta().convertToDouble();
  evaluatePairLoss(operands, results[0], [&](double x, double y) { return huberOf(x - y, beta) / beta; });
}

SampleMeasure BceWithLogitsOp::buildPerSample(OpBuilder &builder) {
  Expression x(builder, getLoc(), getPrediction()), y(builder, getLoc(), getTarget());
  return {buildSampleMean(builder, getLoc(), x.apply<SoftplusOp>() - x * y, 1), {}};
}

/// Of one yes or no for each sample; several are as many questions, of which no single number speaks.
SampleFacts BceWithLogitsOp::buildFacts(OpBuilder &builder) {
  auto type = tensorOf(getPrediction());
  if (type.getNumElements() != type.getDimSize(0))
    return {};
  auto isAbove = [&](Value value, double number) -> Value {
    Expression x(builder, getLoc(), value);
    Value isTrue = create<CompareOp>(builder, getLoc(), value, x.number(number).value(), builder.getStringAttr("gt"));
    return create<CastOp>(builder, getLoc(), isTrue, TypeAttr::get(type.getElementType()));
  };
  SampleFacts facts;
  facts.target = isAbove(getTarget(), 0.5);
  facts.predicted = isAbove(getPrediction(), 0);
  // An op of the loss, so that it lies on the same stage as the others; the order of scores is the same.
  facts.score = Expression(builder, getLoc(), getPrediction()) * 2.0;
  return facts;
}

void BceWithLogitsOp::compute(HostOperands operands, HostResults results) {
  evaluatePairLoss(operands, results[0],
                   [](double x, double y) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))) - x * y; });
}

/// 0 · log 0 is 0: the smallest float keeps the logarithm finite.
constexpr double smallestProbability = 1e-37;

SampleMeasure KlDivOp::buildPerSample(OpBuilder &builder) {
  Expression x(builder, getLoc(), getPrediction()), y(builder, getLoc(), getTarget());
  Expression logarithm = y.apply<ClipOp>(builder.getF64FloatAttr(smallestProbability), FloatAttr()).apply<LogOp>();
  return {buildSampleMean(builder, getLoc(), y * (logarithm - x), 1), {}};
}

void KlDivOp::compute(HostOperands operands, HostResults results) {
  evaluatePairLoss(operands, results[0],
                   [](double x, double y) { return y * (std::log(std::max(y, smallestProbability)) - x); });
}

//===- Losses of classes -----------------------------------------------------------------------------------------===//

/// Prediction […, classes] with at least one dimension of samples in front, target […] of integers, weight [classes].
template <typename Adaptor> static FailureOr<Type> inferClassLoss(Adaptor op, const Rejection &reject) {
  auto prediction = tensorOf(op.getPrediction()), target = tensorOf(op.getTarget());
  if (prediction.getRank() < 2 || !isa<FloatType>(prediction.getElementType()) ||
      !isa<IntegerType>(target.getElementType()) || !mayBeEqual(prediction.getShape().drop_back(), target.getShape()))
    return reject("has prediction ", prediction, " and target ", target,
                  ", expected [samples, …, classes] and integers of shape [samples, …]");
  if (prediction.getShape().back() == 0)
    return reject("has prediction ", prediction, ", expected at least one class");
  if (op.getWeight()) {
    auto weight = tensorOf(op.getWeight());
    if (weight.getRank() != 1 || !mayBeEqual(weight.getDimSize(0), prediction.getShape().back()) ||
        weight.getElementType() != prediction.getElementType())
      return reject("has prediction ", prediction, " and weight ", weight, ", expected a weight for each of the ",
                    prediction.getShape().back(), " classes");
  }
  return RankedTensorType::get({}, prediction.getElementType());
}

namespace {
/// The positions of a loss of classes: what each is asked for and how much it counts.
struct Positions {
  Value target;  ///< a class for each, 0 where it is ignored
  Value counted; ///< 1, or 0 where the position is ignored; null where every one counts
};
} // namespace

static Positions buildPositions(OpBuilder &builder, Location loc, Value target, Type element,
                                std::optional<int64_t> ignoreIndex) {
  auto scalar = RankedTensorType::get({}, tensorOf(target).getElementType());
  // A class that the target's type cannot hold, as -100 of unsigned ones, is no position's.
  if (!ignoreIndex || storedElement(double(*ignoreIndex), scalar.getElementType()) != double(*ignoreIndex))
    return {target, {}};
  Value isCounted = create<CompareOp>(builder, loc, target, buildFilled(builder, loc, scalar, double(*ignoreIndex)),
                                      builder.getStringAttr("ne"));
  Value inside = create<SelectOp>(builder, loc, isCounted, target, buildFilled(builder, loc, scalar, 0));
  return {inside, create<CastOp>(builder, loc, isCounted, TypeAttr::get(element))};
}

/// Σ c · ((1 - s) · w[y] · -log p[y] + s / classes · Σ w · -log p) over Σ c · w[y], with c whether a position counts
/// and s the smoothing; a mean over all positions where nothing is weighed.
static SampleMeasure buildClassLoss(OpBuilder &builder, Location loc, Value logProbabilities, Value target,
                                    Value weight, std::optional<int64_t> ignoreIndex, double smoothing) {
  auto type = tensorOf(logProbabilities);
  int64_t classes = type.getShape().back();
  auto [inside, counted] = buildPositions(builder, loc, target, type.getElementType(), ignoreIndex);
  Value count = counted;
  if (weight) {
    Value table = buildReshape(builder, loc, weight, {classes, 1});
    Value own = buildReshape(builder, loc, create<EmbeddingOp>(builder, loc, table, inside, IntegerAttr()),
                             tensorOf(inside).getShape());
    count = counted ? Value(create<MulOp>(builder, loc, own, counted)) : own;
  }
  auto times = [&](Expression value, Value factor) {
    return factor ? value * Expression(builder, loc, factor) : value;
  };
  Expression loss(builder, loc, create<PickOp>(builder, loc, logProbabilities, inside));
  loss = times(loss, count);
  if (smoothing > 0) {
    const int64_t last[] = {type.getRank() - 1};
    Expression all = times(Expression(builder, loc, logProbabilities), weight);
    Expression sum(builder, loc, create<ReduceSumOp>(builder, loc, all.value(), last, /*keep=*/false));
    loss = loss * (1 - smoothing) + times(sum, counted) * (smoothing / double(classes));
  }
  if (!count)
    return {buildSampleMean(builder, loc, loss, -1), {}};
  return {buildScale(builder, loc, buildSampleSum(builder, loc, loss), -1), buildSampleSum(builder, loc, count)};
}

static SampleMeasure buildAccuracy(OpBuilder &builder, Location loc, Value scores, Value target,
                                   std::optional<int64_t> ignoreIndex) {
  auto [inside, counted] = buildPositions(builder, loc, target, tensorOf(scores).getElementType(), ignoreIndex);
  Value correct = create<CorrectOp>(builder, loc, scores, inside);
  if (!counted)
    return {buildSampleMean(builder, loc, correct, 1), {}};
  correct = create<MulOp>(builder, loc, correct, counted);
  return {buildSampleSum(builder, loc, correct), buildSampleSum(builder, loc, counted)};
}

/// Classes in the order of their scores, the first of equal ones before the others, and NaN before all: c - (scores
/// below the target's) - (equal scores of classes from the target's on).
static Value buildRank(OpBuilder &builder, Location loc, Value scores, Value target) {
  auto type = tensorOf(scores);
  const int64_t classes = type.getShape().back(), last[] = {type.getRank() - 1};
  llvm::SmallVector<int64_t> columnShape(tensorOf(target).getShape()), numbers(static_cast<size_t>(classes));
  columnShape.push_back(1);
  std::iota(numbers.begin(), numbers.end(), int64_t(0));
  auto wide = builder.getI64Type();
  auto numbersType = RankedTensorType::get({classes}, wide);
  Value own = buildReshape(builder, loc, create<PickOp>(builder, loc, scores, target), columnShape);
  Value wanted = create<CastOp>(builder, loc, target, TypeAttr::get(wide));
  wanted = buildReshape(builder, loc, wanted, columnShape);
  Value each = builder.create<LiteralOp>(loc, numbersType,
                                         DenseElementsAttr::get(numbersType, ArrayRef<int64_t>(numbers)), PlaceAttr());
  auto compared = [&](Value a, Value b, const char *predicate) -> Value {
    return create<CompareOp>(builder, loc, a, b, builder.getStringAttr(predicate));
  };
  Value isAfter = create<LogicalAndOp>(builder, loc, compared(scores, own, "eq"), compared(each, wanted, "ge"));
  isAfter = create<LogicalOrOp>(builder, loc, isAfter, compared(scores, own, "lt"));
  Value count = create<CastOp>(builder, loc, isAfter, TypeAttr::get(builder.getF32Type()));
  Expression after(builder, loc, create<ReduceSumOp>(builder, loc, count, last, /*keep=*/false));
  return double(classes) - after;
}

static SampleFacts buildClassFacts(OpBuilder &builder, Location loc, Value scores, Value target,
                                   std::optional<int64_t> ignoreIndex) {
  auto type = tensorOf(scores);
  const int64_t classes = type.getShape().back();
  auto asFloat = [&](Value value) -> Value {
    return create<CastOp>(builder, loc, value, TypeAttr::get(builder.getF32Type()));
  };
  auto [inside, counted] = buildPositions(builder, loc, target, builder.getF32Type(), ignoreIndex);
  SampleFacts facts;
  facts.target = asFloat(inside);
  if (counted) {
    Expression own(builder, loc, facts.target), counts(builder, loc, counted);
    facts.target = (own + 1.0) * counts - 1.0;
  }
  facts.predicted = asFloat(create<ArgMaxOp>(builder, loc, scores, /*axis=*/-1, /*keep=*/false, /*last=*/false));
  constexpr int64_t mostForAll = 5; // up to so many, all are among the first 5
  if (classes > mostForAll)
    facts.rank = buildRank(builder, loc, scores, inside);
  if (classes == 2) {
    // Class 1 minus class 0.
    auto pair = RankedTensorType::get({2}, type.getElementType());
    const Attribute numbers[] = {builder.getFloatAttr(type.getElementType(), -1),
                                 builder.getFloatAttr(type.getElementType(), 1)};
    Value signs =
        builder.create<LiteralOp>(loc, pair, DenseElementsAttr::get(pair, ArrayRef<Attribute>(numbers)), PlaceAttr());
    const int64_t last[] = {type.getRank() - 1};
    Value signedScores = create<MulOp>(builder, loc, scores, signs);
    facts.score = create<ReduceSumOp>(builder, loc, signedScores, last, /*keep=*/false);
  }
  return facts;
}

/// The same formula, from `logProbability(row, class)`.
template <typename LogProbability>
static LogicalResult evaluateClassLoss(Operation *op, ArrayRef<HostTensor> operands, HostTensor &result,
                                       std::optional<int64_t> ignoreIndex, double smoothing,
                                       LogProbability logProbability) {
  const HostTensor &prediction = operands[0], &target = operands[1];
  int64_t classes = rowSize(prediction), rows = numRows(prediction);
  auto weightOf = [&](int64_t index) { return operands.size() > 2 ? operands[2].data[size_t(index)] : 1.0; };
  double sum = 0, count = 0;
  for (int64_t row = 0; row < rows; ++row) {
    double index = target.data[size_t(row)];
    if (ignoreIndex && index == double(*ignoreIndex))
      continue;
    if (index < 0 || index >= double(classes))
      return op->emitOpError() << "found class " << index << " at place " << row << ", expected 0 to " << classes - 1;
    auto scores = ArrayRef<double>(prediction.data).slice(size_t(row * classes), size_t(classes));
    double own = weightOf(int64_t(index));
    sum -= (1 - smoothing) * own * logProbability(scores, int64_t(index));
    for (int64_t other = 0; smoothing > 0 && other < classes; ++other)
      sum -= smoothing / double(classes) * weightOf(other) * logProbability(scores, other);
    count += own;
  }
  result.data[0] = count == 0 ? 0 : sum / count;
  return success();
}

FailureOr<Type> NllOp::inferType(Adaptor op, const Rejection &reject) { return inferClassLoss(op, reject); }

SampleMeasure NllOp::buildPerSample(OpBuilder &builder) {
  return buildClassLoss(builder, getLoc(), getPrediction(), getTarget(), getWeight(), getIgnoreIndex(), 0);
}

SampleFacts NllOp::buildFacts(OpBuilder &builder) {
  return buildClassFacts(builder, getLoc(), getPrediction(), getTarget(), getIgnoreIndex());
}

SampleMeasure NllOp::buildPerSampleAccuracy(OpBuilder &builder) {
  return buildAccuracy(builder, getLoc(), getPrediction(), getTarget(), getIgnoreIndex());
}

/// A target that is ignored may be any number.
static IndexBound classBound(Value prediction, unsigned operand) {
  return {operand == 1 ? tensorOf(prediction).getShape().back() : 0};
}
IndexBound NllOp::getIndexBound(unsigned operand) { return classBound(getPrediction(), operand); }
IndexBound CrossEntropyOp::getIndexBound(unsigned operand) { return classBound(getPrediction(), operand); }

LogicalResult NllOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  return evaluateClassLoss(*this, operands, results[0], getIgnoreIndex(), 0,
                           [](ArrayRef<double> row, int64_t index) { return row[size_t(index)]; });
}

FailureOr<Type> CrossEntropyOp::inferType(Adaptor op, const Rejection &reject) {
  double smoothing = op.getLabelSmoothing().convertToDouble();
  if (!(smoothing >= 0 && smoothing <= 1))
    return reject("has label_smoothing ", op.getLabelSmoothingAttr(), ", expected a number from 0 to 1");
  return inferClassLoss(op, reject);
}

SampleMeasure CrossEntropyOp::buildPerSample(OpBuilder &builder) {
  Value logProbabilities = create<LogSoftmaxOp>(builder, getLoc(), getPrediction());
  return buildClassLoss(builder, getLoc(), logProbabilities, getTarget(), getWeight(), getIgnoreIndex(),
                        getLabelSmoothing().convertToDouble());
}

SampleFacts CrossEntropyOp::buildFacts(OpBuilder &builder) {
  return buildClassFacts(builder, getLoc(), getPrediction(), getTarget(), getIgnoreIndex());
}

SampleMeasure CrossEntropyOp::buildPerSampleAccuracy(OpBuilder &builder) {
  return buildAccuracy(builder, getLoc(), getPrediction(), getTarget(), getIgnoreIndex());
}

LogicalResult CrossEntropyOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  return evaluateClassLoss(*this, operands, results[0], getIgnoreIndex(), getLabelSmoothing().convertToDouble(),
                           [](ArrayRef<double> row, int64_t index) {
                             double largest = *llvm::max_element(row), sum = 0;
                             for (double score : row)
                               sum += std::exp(score - largest);
                             return row[size_t(index)] - largest - std::log(sum);
                           });
}

} // namespace dg::ir

#define DG_OPS "ir/ops/training/LossOps.cpp.inc"
#define DG_ADD_OPS addLossOps
#include "ir/ops/Family.inc"
