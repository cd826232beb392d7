// SPDX-License-Identifier: Apache-2.0
// Makes a loss a weighted sum over samples. With the weights an input, padding, partial batches, micro-batches and
// accumulation need no kernel of their own: whatever is added up is already the mean.
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"
#include "passes/shape/PartsOf.h"
#include "passes/train/LossWeigher.h"
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
    LossWeigher weigher(graph, {microbatches, pieces, padded});
    FailureOr<Value> weighted = weigher.weigh(end.getOperand(0));
    if (failed(weighted))
      return failure();
    setPlace(weighted->getDefiningOp(), withLabel(getPlace(weighted->getDefiningOp()), "loss"));

    OpBuilder builder(end);
    SmallVector<Value> results = {*weighted};
    SmallVector<Attribute> names = {builder.getStringAttr("loss")};
    if (graph.getSymName() == "eval")
      addMeasures(weigher, end, results, names);
    create<ReturnOp>(builder, end.getLoc(), results, builder.getArrayAttr(names));
    end.erase();
    weigher.eraseReplaced();
    return success();
  }

  /// Of the first loss that has them: it stands for the task, others help it.
  void addMeasures(LossWeigher &weigher, ReturnOp end, SmallVector<Value> &results,
                   SmallVector<Attribute> &names) const {
    for (LossOp loss : weigher.losses()) {
      PartsOf parts(withLabel(getPlace(loss), ""));
      OpBuilder builder(loss->getContext(), &parts);
      builder.setInsertionPoint(end);
      const size_t numBefore = results.size();
      if (SampleMeasure accuracy = loss.buildPerSampleAccuracy(builder); accuracy.value) {
        results.push_back(weigher.mean(loss, accuracy));
        names.push_back(builder.getStringAttr("accuracy"));
      }
      if (metrics)
        addFacts(weigher, builder, loss, results, names);
      if (results.size() > numBefore)
        return;
    }
  }

  /// What metrics need of each sample, as f32. Rows of padding are left out by who reads them.
  static void addFacts(const LossWeigher &weigher, OpBuilder &builder, LossOp loss, SmallVector<Value> &results,
                       SmallVector<Attribute> &names) {
    const SampleFacts facts = loss.buildFacts(builder);
    for (auto [name, value] : {std::pair(plan::targetPort, facts.target),
                               {plan::predictedPort, facts.predicted},
                               {plan::rankPort, facts.rank},
                               {plan::scorePort, facts.score},
                               {plan::squarePort, facts.square},
                               {plan::absolutePort, facts.absolute}})
      if (value) {
        Value each = weigher.bySample(builder, loss->getLoc(), value);
        results.push_back(
            tensorOf(each).getElementType().isF32()
                ? each
                : Value(create<CastOp>(builder, loss->getLoc(), each, TypeAttr::get(builder.getF32Type()))));
        names.push_back(builder.getStringAttr(name));
      }
  }
};

} // namespace
} // namespace dg::passes
