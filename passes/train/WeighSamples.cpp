// SPDX-License-Identifier: Apache-2.0
// Makes a loss a weighted sum over samples. With the weights an input, padding, partial batches, micro-batches and
// accumulation need no kernel of their own: whatever is added up is already the mean.
#include "ir/dialect/Expression.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"
#include "passes/shape/PartsOf.h"
#include "passes/train/AddedInputs.h"
#include "runtime/plan/MetricPorts.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_WEIGHSAMPLES
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct WeighSamplesPass : impl::WeighSamplesBase<WeighSamplesPass> {
  using WeighSamplesBase::WeighSamplesBase;

  void runOnOperation() override {
    for (StringRef name : {"loss", "eval"})
      if (auto graph = getOperation().lookupSymbol<GraphOp>(name))
        if (failed(weigh(graph)))
          return signalPassFailure();
  }

private:
  LogicalResult weigh(GraphOp graph) const {
    ReturnOp end = graph.getReturn();
    if (end.getNumOperands() == 0)
      return end.emitOpError("returns nothing, expected the loss first");
    auto loss = end.getOperand(0).getDefiningOp<LossOp>();
    if (!loss)
      return end.emitOpError("returns a value first that no loss op made: end the graph with dg.mse, dg.nll or "
                             "dg.cross_entropy, and return its result");
    PartsOf parts(withLabel(getPlace(loss), ""));
    OpBuilder builder(loss->getContext(), &parts);
    builder.setInsertionPoint(loss);
    SampleMeasure perSample = loss.buildPerSample(builder);
    if (failed(checkRows(graph, loss, tensorOf(perSample.value).getDimSize(0))))
      return failure();
    BlockArgument weights = graph.addInput(sampleWeightName, tensorOf(perSample.value));
    Value weighted = weighed(builder, loss->getLoc(), perSample, weights);
    setPlace(weighted.getDefiningOp(), withLabel(getPlace(weighted.getDefiningOp()), "loss"));

    SmallVector<Value> results = {weighted};
    SmallVector<Attribute> names = {builder.getStringAttr("loss")};
    if (graph.getSymName() == "eval") {
      if (SampleMeasure accuracy = loss.buildPerSampleAccuracy(builder); accuracy.value) {
        results.push_back(weighed(builder, loss->getLoc(), accuracy, weights));
        names.push_back(builder.getStringAttr("accuracy"));
      }
      if (metrics)
        addFacts(builder, loss, results, names);
    }
    builder.setInsertionPoint(end);
    create<ReturnOp>(builder, end.getLoc(), results, builder.getArrayAttr(names));
    end.erase();
    if (loss->use_empty())
      loss->erase();
    return success();
  }

  /// Weights are fed by sample: of a loss with other rows, as of flattened tokens, only some rows would count.
  static LogicalResult checkRows(GraphOp graph, LossOp loss, int64_t rows) {
    auto inputs = llvm::make_filter_range(graph.getBody().getArguments(),
                                          [](Value input) { return tensorOf(input).getRank() > 0; });
    if (inputs.empty() || llvm::any_of(inputs, [rows](Value input) { return tensorOf(input).getDimSize(0) == rows; }))
      return success();
    return loss->emitOpError("is a mean over ")
           << rows
           << " rows, where no input has so many samples; keep the samples in the first dimension, as logits of "
           << "[samples, tokens, classes] with targets of [samples, tokens]";
  }

  /// What metrics need of each sample, as f32. Rows of padding are left out by who reads them.
  static void addFacts(OpBuilder &builder, LossOp loss, SmallVector<Value> &results, SmallVector<Attribute> &names) {
    const SampleFacts facts = loss.buildFacts(builder);
    for (auto [name, value] : {std::pair(plan::targetPort, facts.target),
                               {plan::predictedPort, facts.predicted},
                               {plan::rankPort, facts.rank},
                               {plan::scorePort, facts.score},
                               {plan::squarePort, facts.square},
                               {plan::absolutePort, facts.absolute}})
      if (value) {
        results.push_back(
            tensorOf(value).getElementType().isF32()
                ? value
                : Value(create<CastOp>(builder, loss->getLoc(), value, TypeAttr::get(builder.getF32Type()))));
        names.push_back(builder.getStringAttr(name));
      }
  }

  /// Σ w · value, which adds up over ranks and micro-batches. Where samples count differently: Σ w · Σ w · value / Σ w
  /// · count, the mean of the micro-batch times its part in the step. What counts is summed over all ranks before
  /// anything is divided by it; the smallest number keeps a micro-batch in which nothing counts from dividing by 0.
  static Value weighed(OpBuilder &builder, Location location, SampleMeasure measure, Value weights) {
    auto sum = [&](Value values) {
      return Expression(builder, location,
                        create<ReduceSumOp>(builder, location, values, ArrayRef<int64_t>{0}, /*keep=*/false));
    };
    auto weightedSum = [&](Value values) { return sum(create<MulOp>(builder, location, values, weights)); };
    if (!measure.count)
      return weightedSum(measure.value);
    return weightedSum(measure.value) * (sum(weights) / (weightedSum(measure.count) + 1e-30));
  }
};

} // namespace
} // namespace dg::passes
