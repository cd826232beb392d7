// SPDX-License-Identifier: Apache-2.0
// Closes the train phase: from here on @train has one update for each trained parameter, losses and training forms are
// taken apart, and what a phase reads was made in it or before it.
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_VERIFYTRAINING
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct VerifyTrainingPass : impl::VerifyTrainingBase<VerifyTrainingPass> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<GraphOp>())
      if (failed(graph.getSymName() == "train" ? verifyTrained(graph) : verifyFixed(graph)))
        return signalPassFailure();
  }

private:
  static LogicalResult verifyTrained(GraphOp graph) {
    llvm::StringSet<> updated; // once at most, by the verifier of dg.graph
    for (auto update : graph.getBody().front().getOps<UpdateOp>())
      updated.insert(update.getParam());
    for (auto parameter : graph.getBody().front().getOps<ParameterOp>())
      if (!parameter.getFrozen() && !parameter.getState() && !updated.contains(parameter.getParam()))
        return parameter.emitOpError() << "'" << parameter.getParam()
                                       << "' is trained and has no update, expected one from --dg-add-optimizer";
    for (Operation &op : graph.getBody().front()) {
      if (isa<LossOp, TrainingOp>(op))
        return op.emitOpError("is left in @train after the train phase, expected its parts");
      if (!isa<ReturnOp>(op) && failed(verifyPhase(&op)))
        return failure();
    }
    return success();
  }

  /// A phase reads what it, or one before it, has made.
  static LogicalResult verifyPhase(Operation *op) {
    Phase phase = getPlace(op).getPhase();
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp(); producer && getPlace(producer).getPhase() > phase)
        return op->emitOpError() << "of the " << stringifyPhase(phase) << " phase reads a result of the "
                                 << stringifyPhase(getPlace(producer).getPhase()) << " phase, which comes later";
    return success();
  }

  /// Evaluation and inference leave parameters as they are.
  static LogicalResult verifyFixed(GraphOp graph) {
    if (graph.getSymName() == "loss")
      return graph.emitOpError("is left after the train phase, expected @train from --dg-differentiate");
    for (auto update : graph.getBody().front().getOps<UpdateOp>())
      return update.emitOpError() << "writes '" << update.getParam() << "' outside of @train";
    return success();
  }
};

} // namespace
} // namespace dg::passes
