// SPDX-License-Identifier: Apache-2.0
// Refuses padded steps and micro-batches of a model in which an op mixes the samples of a batch (a mean or softmax over
// dimension 0, x · xᵀ), and notes the op for whoever feeds the job. Rows of padding have weight zero in the loss, but
// in such an op they count like samples; a micro-batch sees only its own. Batch norm, which weighs them and whose
// statistics are per micro-batch by definition, is not one.
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"
#include "passes/UsageError.h"
#include "passes/shape/SampleDims.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_CHECKSAMPLES
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// Finds the ops that certainly mix samples which all count alike.
class MixingOps {
public:
  explicit MixingOps(GraphOp graph) : dims(graph) {
    for (BlockArgument argument : graph.getBody().getArguments())
      if (graph.getInputName(argument.getArgNumber()) == "sample_weight")
        weighed.insert(argument);
  }

  /// Asked in the order of the ops.
  bool contain(ShardingRuleOp op) {
    if (llvm::any_of(op->getOperands(), [&](Value operand) { return weighed.contains(operand); })) {
      weighed.insert(op->result_begin(), op->result_end()); // padding is zero from here on
      return false;
    }
    SampleDims::Step step = dims.follow(op, op.getShardingRule());
    // Other ops that do not follow a dimension move elements, or have one of size 1.
    return step.hasTwo || (step.factor && !step.isKept) || (step.isLost && mixesWholeDims(op));
  }

private:
  SampleDims dims;
  llvm::DenseSet<Value> weighed; ///< by sample_weight
};

struct CheckSamplesPass : impl::CheckSamplesBase<CheckSamplesPass> {
  using CheckSamplesBase::CheckSamplesBase;

  void runOnOperation() override {
    for (StringRef name : {"eval", "infer"})
      if (auto graph = getOperation().lookupSymbol<GraphOp>(name); graph && failed(check(graph)))
        return signalPassFailure();
  }

private:
  /// "dg.reduce_mean at model.mlir:4:10", for messages of the job.
  static std::string describe(Operation *op) {
    std::string text = op->getName().getStringRef().str();
    if (auto place = op->getLoc()->findInstanceOf<FileLineColLoc>())
      text +=
          (" at " + place.getFilename().strref() + ":" + Twine(place.getLine()) + ":" + Twine(place.getColumn())).str();
    return text;
  }

  LogicalResult check(GraphOp graph) {
    const bool isTraining = graph.getSymName() == "eval";
    MixingOps mixing(graph);
    for (Operation &op : graph.getBody().front()) {
      // What a body does with its samples is not in the rule of its op.
      auto ruled = dyn_cast<ShardingRuleOp>(op);
      if (!ruled || op.getNumRegions() != 0 || !mixing.contain(ruled))
        continue;
      // Of an inference only some results may depend on it, and one that has no row for each sample is seen to there.
      if (pieces > 1 && isTraining)
        return emitOpUsageError(&op) << "mixes the samples of a batch, but a batch is cut into " << int64_t(pieces)
                                     << " micro-batches, of which each would see only its own: give --microbatches 1";
      if (padded > 0)
        return emitOpUsageError(&op)
               << "mixes the samples of a batch, but " << int64_t(padded)
               << " rows of each step are padding, which would count: give a --batch that the data "
                  "ranks divide";
      if (isTraining)
        getOperation()->setAttr("dg.mixes_samples", StringAttr::get(&getContext(), describe(&op)));
      return success();
    }
    return success();
  }
};

} // namespace
} // namespace dg::passes
