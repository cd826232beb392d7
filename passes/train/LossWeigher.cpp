// SPDX-License-Identifier: Apache-2.0
#include "passes/train/LossWeigher.h"

#include "ir/dialect/Expression.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/LossTerms.h"
#include "passes/UsageError.h"
#include "passes/shape/Composites.h"
#include "passes/shape/PartsOf.h"
#include "passes/shape/SampleDims.h"
#include "passes/train/AddedInputs.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;

namespace dg::passes {

using namespace ir;

static Value sumOver(OpBuilder &builder, Location loc, Value value, int64_t dim, bool keep = false) {
  return create<ReduceSumOp>(builder, loc, value, ArrayRef<int64_t>{dim}, keep);
}

/// The mean over dimension 0 of what a loss says of its rows, which are no samples.
static Value plainMean(OpBuilder &builder, Location loc, SampleMeasure measure) {
  Expression sum(builder, loc, sumOver(builder, loc, measure.value, 0));
  if (!measure.count)
    return sum / double(tensorOf(measure.value).getDimSize(0));
  return sum / (Expression(builder, loc, sumOver(builder, loc, measure.count, 0)) + 1e-30);
}

LossWeigher::LossWeigher(GraphOp graph, StepCut cut) : graph(graph), cut(cut) {
  for (BlockArgument argument : graph.getBody().getArguments()) {
    varying.insert(argument);
    if (auto type = tensorOf(argument); rows == 0 && type.getRank() > 0)
      rows = type.getDimSize(0);
  }
  for (Operation &op : graph.getBody().front())
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return varies(operand); }))
      varying.insert(op.result_begin(), op.result_end());
  findSamples();
  meanOfFixedLosses();
  weights = graph.addInput(sampleWeightName, RankedTensorType::get({rows}, Float32Type::get(graph.getContext())));
}

/// Asks a copy without composites: only their parts have sharding rules.
void LossWeigher::findSamples() {
  SmallVector<Value> values(graph.getBody().args_begin(), graph.getBody().args_end()), copied;
  for (Operation &op : graph.getBody().front())
    values.append(op.result_begin(), op.result_end());
  IRMapping mapping;
  OwningOpRef<GraphOp> copy = cast<GraphOp>(graph->clone(mapping));
  for (Value value : values)
    copied.push_back(mapping.lookup(value));
  ReturnOp end = copy->getReturn();
  end->setOperands(copied); // replaced with the composites
  decomposeAll(*copy, /*storesScores=*/false);
  SampleDims dims(*copy);
  for (auto op : copy->getBody().getOps<ShardingRuleOp>())
    dims.follow(op, op.getShardingRule());
  for (auto [value, known] : llvm::zip_equal(values, end->getOperands()))
    if (std::optional<int64_t> dim = dims.of(known))
      samples[value] = *dim;
}

std::optional<int64_t> LossWeigher::samplesOf(Value value) const {
  auto known = samples.find(value);
  return known == samples.end() ? std::nullopt : std::optional(known->second);
}

/// A loss of parameters alone has rows, but no samples.
void LossWeigher::meanOfFixedLosses() {
  for (auto loss : llvm::make_early_inc_range(graph.getBody().getOps<LossOp>())) {
    if (varies(loss->getResult(0)))
      continue;
    PartsOf parts(withLabel(getPlace(loss), ""));
    OpBuilder builder(loss->getContext(), &parts);
    builder.setInsertionPoint(loss);
    loss->getResult(0).replaceAllUsesWith(plainMean(builder, loss->getLoc(), loss.buildPerSample(builder)));
    loss->erase();
  }
}

FailureOr<Value> LossWeigher::weigh(Value scalar) {
  ReturnOp end = graph.getReturn();
  auto type = tensorOf(scalar);
  if (type.getRank() != 0 || !isa<FloatType>(type.getElementType()))
    return end.emitOpError() << "returns " << type << " first, expected the loss, a scalar of floats: end the graph "
                             << "with dg.mse, dg.cross_entropy, dg.reduce_mean over all dimensions or a sum of such";
  if (!varies(scalar) || rows == 0)
    return end.emitOpError("returns a loss that depends on no sample, expected one of what an input holds");
  return weighTerm(scalar);
}

FailureOr<Value> LossWeigher::weighTerm(Value value) {
  if (Value known = weighed.lookup(value))
    return known;
  FailureOr<Value> made;
  if (varies(value)) {
    made = weighVarying(value);
  } else {
    // Once in a step: the weights of all rows of all micro-batches are together 1.
    Operation *producer = value.getDefiningOp();
    PartsOf parts(withLabel(getPlace(producer), ""));
    OpBuilder builder(value.getContext(), &parts);
    builder.setInsertionPoint(graph.getReturn());
    Location loc = value.getLoc();
    made = create<MulOp>(builder, loc, value, sumOver(builder, loc, weightsFor(builder, loc, value), 0)).getResult();
  }
  if (succeeded(made))
    weighed[value] = *made;
  return made;
}

FailureOr<Value> LossWeigher::weighVarying(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return graph.getReturn().emitOpError("returns an input as the loss, expected something computed");
  FailureOr<Value> made;
  std::optional<Summing> summing = summingOf(op);
  std::optional<int64_t> dim = summing ? samplesOf(op->getOperand(0)) : std::nullopt;
  if (auto loss = dyn_cast<LossOp>(op))
    made = weighLoss(loss);
  else if (dim && *dim != SampleDims::nowhere && llvm::is_contained(summing->dims, *dim))
    made = weighSum(op, *dim, summing->isMean);
  else
    made = weighFunction(op);
  if (succeeded(made))
    replaced.push_back(op);
  return made;
}

FailureOr<Value> LossWeigher::weighLoss(LossOp loss) {
  Value prediction = loss->getOperand(0);
  const int64_t leading = tensorOf(prediction).getDimSize(0);
  std::optional<int64_t> dim = samplesOf(prediction);
  // Sharding rules do not follow a dimension of size 1; then all rows are of this sample.
  const bool isOfOneSample = rows == 1 && !dim;
  if (leading % rows != 0 || (dim ? *dim != 0 : leading != rows && !isOfOneSample))
    return loss->emitOpError() << "compares " << tensorOf(prediction) << ", whose dimension 0 does not count the "
                               << rows << " samples of the inputs: bring them to the front";
  PartsOf parts(withLabel(getPlace(loss), ""));
  OpBuilder builder(loss->getContext(), &parts);
  builder.setInsertionPoint(graph.getReturn());
  found.push_back(loss);
  return mean(loss, loss.buildPerSample(builder));
}

Value LossWeigher::bySample(OpBuilder &builder, Location loc, Value value) const {
  ArrayRef<int64_t> shape = tensorOf(value).getShape();
  if (shape[0] == rows)
    return value;
  SmallVector<int64_t> split = {rows, shape[0] / rows};
  split.append(shape.begin() + 1, shape.end());
  return buildReshape(builder, loc, value, split);
}

/// Σ w · value, which adds up over ranks and micro-batches. Where samples count differently: Σ w · Σ w · value / Σ w ·
/// count, the mean of the micro-batch times its part in the step. What counts is summed over all ranks before anything
/// is divided by it; the smallest number keeps a micro-batch in which nothing counts from dividing by 0.
Value LossWeigher::mean(LossOp loss, SampleMeasure measure) {
  Location loc = loss->getLoc();
  PartsOf parts(withLabel(getPlace(loss), ""));
  OpBuilder builder(loss->getContext(), &parts);
  builder.setInsertionPoint(graph.getReturn());
  const double positions = double(tensorOf(measure.value).getDimSize(0)) / double(rows);
  auto weightedSum = [&](Value values, double positions) {
    Value each = bySample(builder, loc, values);
    if (tensorOf(each).getRank() > 1)
      each = buildScale(builder, loc, sumOver(builder, loc, each, 1), 1 / positions);
    each = create<MulOp>(builder, loc, each, weightsFor(builder, loc, each));
    return Expression(builder, loc, sumOver(builder, loc, each, 0));
  };
  if (!measure.count)
    return weightedSum(measure.value, positions);
  Expression share(builder, loc, sumOver(builder, loc, weightsFor(builder, loc, measure.value), 0));
  return weightedSum(measure.value, 1) * (share / (weightedSum(measure.count, 1) + 1e-30));
}

/// Sums over samples are those over a full batch, whatever the step holds: rows times the mean.
FailureOr<Value> LossWeigher::weighSum(Operation *op, int64_t dim, bool isMean) {
  if (!isMean && (cut.pieces > 1 || cut.padded > 0))
    return emitOpUsageError(op) << "adds up samples in the loss, where a batch is cut into " << cut.pieces
                                << " micro-batches with " << cut.padded << " rows of padding: take the mean with "
                                << "dg.reduce_mean, or give --microbatches 1 and a --batch that the data ranks divide";
  Value input = op->getOperand(0);
  if (!isa<FloatType>(tensorOf(input).getElementType()))
    return op->emitOpError() << "adds up samples of " << tensorOf(input) << " in the loss, expected floats: dg.cast";
  PartsOf parts(getPlace(op));
  OpBuilder builder(op->getContext(), &parts);
  builder.setInsertionPoint(graph.getReturn());
  Location loc = op->getLoc();
  const int64_t size = tensorOf(input).getDimSize(dim), positions = size / rows;
  Value each = weightsFor(builder, loc, input);
  each = buildScale(builder, loc, each, isMean ? 1.0 / double(positions) : double(rows));
  if (positions > 1)
    each = create<ExpandOp>(builder, loc, buildReshape(builder, loc, each, {rows, 1}),
                            builder.getDenseI64ArrayAttr({rows, positions}));
  SmallVector<int64_t> shape(tensorOf(input).getRank(), 1);
  shape[dim] = size;
  each = create<MulOp>(builder, loc, input, buildReshape(builder, loc, each, shape));
  IRMapping mapping; // the other dimensions as before
  mapping.map(input, sumOver(builder, loc, each, dim, /*keep=*/true));
  return builder.clone(*op, mapping)->getResult(0);
}

FailureOr<Value> LossWeigher::weighFunction(Operation *op) {
  SmallVector<bool> vary;
  for (Value operand : op->getOperands())
    vary.push_back(varies(operand));
  for (Value operand : op->getOperands())
    if (varies(operand) && samplesOf(operand).value_or(0) != SampleDims::nowhere)
      return op->emitOpError()
             << "takes the samples of a batch together, in the loss, by something else than a mean or "
                "a sum: dg.reduce_mean over dimension 0 makes a mean";
  if (cut.microbatches > 1 && !isLinearIn(op, vary))
    return emitOpUsageError(op)
           << "makes the loss something else than a mean over samples: it can only be computed of a "
              "whole batch, which is cut into micro-batches: give --microbatches 1 and no --accumulate";
  IRMapping mapping;
  for (Value operand : op->getOperands())
    if (varies(operand) || isAddition(op)) {
      FailureOr<Value> term = weighTerm(operand);
      if (failed(term))
        return failure();
      mapping.map(operand, *term);
    }
  OpBuilder builder(graph.getReturn());
  return builder.clone(*op, mapping)->getResult(0);
}

Value LossWeigher::weightsFor(OpBuilder &builder, Location loc, Value value) const {
  Type element = tensorOf(value).getElementType();
  return element.isF32() ? Value(weights) : create<CastOp>(builder, loc, weights, TypeAttr::get(element)).getResult();
}

void LossWeigher::eraseReplaced() {
  for (Operation *op : llvm::reverse(replaced))
    if (op->use_empty())
      op->erase();
  for (auto loss : llvm::make_early_inc_range(graph.getBody().getOps<LossOp>()))
    if (loss->use_empty())
      loss->erase();
}

} // namespace dg::passes
