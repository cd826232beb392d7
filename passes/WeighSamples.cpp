// SPDX-License-Identifier: Apache-2.0
// Makes a loss a weighted sum over samples. With the weights an input, padding, partial batches, micro-batches and
// accumulation need no kernel of their own: whatever is added up is already the mean.
#include "ir/ElementwiseOps.h"
#include "ir/GraphOps.h"
#include "ir/ShapeOps.h"
#include "passes/PartsOf.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_WEIGHSAMPLES
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct WeighSamplesPass : impl::WeighSamplesBase<WeighSamplesPass> {
  void runOnOperation() override {
    for (StringRef name : {"loss", "eval"})
      if (auto graph = getOperation().lookupSymbol<GraphOp>(name))
        if (failed(weigh(graph)))
          return signalPassFailure();
  }

private:
  LogicalResult weigh(GraphOp graph) {
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
    Value perSample = loss.buildPerSample(builder);
    auto type = tensorOf(perSample);
    BlockArgument weights = graph.addInput("sample_weight", type);
    Value weighted = weightedSum(builder, loss->getLoc(), perSample, weights);
    setPlace(weighted.getDefiningOp(), withLabel(getPlace(weighted.getDefiningOp()), "loss"));

    SmallVector<Value> results = {weighted};
    SmallVector<Attribute> names = {builder.getStringAttr("loss")};
    if (graph.getSymName() == "eval") {
      if (Value accuracy = loss.buildPerSampleAccuracy(builder)) {
        results.push_back(weightedSum(builder, loss->getLoc(), accuracy, weights));
        names.push_back(builder.getStringAttr("accuracy"));
      }
    }
    builder.setInsertionPoint(end);
    builder.create<ReturnOp>(end.getLoc(), results, builder.getArrayAttr(names), PlaceAttr());
    end.erase();
    if (loss->use_empty())
      loss->erase();
    return success();
  }

  static Value weightedSum(OpBuilder &builder, Location location, Value values, Value weights) {
    Value weighted = builder.create<MulOp>(location, values, weights, PlaceAttr());
    return builder.create<ReduceSumOp>(location, weighted, ArrayRef<int64_t>{0}, /*keep=*/false, PlaceAttr());
  }
};

} // namespace
} // namespace dg::passes
