// SPDX-License-Identifier: Apache-2.0
// Replaces ops that compute otherwise while training (batch norm, dropout) by what they compute then, in @loss only: a
// copy of the graph for evaluation keeps them as they are.
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/rules/GradientBuilding.h"
#include "passes/Passes.h"
#include "passes/shape/PartsOf.h"
#include "passes/train/AddedInputs.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_TRAININGFORMS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct TrainingFormsPass : impl::TrainingFormsBase<TrainingFormsPass> {
  void runOnOperation() override {
    auto graph = getOperation().lookupSymbol<GraphOp>("loss");
    if (!graph)
      return;
    SmallVector<TrainingOp> ops;
    bool isHalfFrozen = false;
    graph.walk([&](TrainingOp op) {
      SmallVector<bool> frozen;
      for (Value operand : op->getOperands())
        if (auto state = operand.getDefiningOp<ParameterOp>(); state && state.getState())
          frozen.push_back(state.getFrozen());
      // Over frozen statistics it computes as in evaluation.
      if (!llvm::is_contained(frozen, true)) {
        ops.push_back(op);
      } else if (llvm::is_contained(frozen, false)) {
        op.emitOpError("has some of its running statistics frozen, expected all or none: name both, as 'bn.running_*'");
        isHalfFrozen = true;
      }
    });
    if (isHalfFrozen)
      return signalPassFailure();
    if (ops.empty())
      return;
    FailureOr<TrainingScope> scope = samplesOf(graph);
    if (failed(scope))
      return signalPassFailure();
    for (TrainingOp op : ops)
      if (failed(replace(graph, op, *scope)))
        return signalPassFailure();
  }

private:
  /// What the weights of the samples say about the micro-batch. The smallest number keeps a micro-batch without samples
  /// from dividing by 0.
  FailureOr<TrainingScope> samplesOf(GraphOp graph) {
    auto *name =
        llvm::find_if(graph.getInputNames(), [](Attribute name) { return cast<StringAttr>(name) == sampleWeightName; });
    if (name == graph.getInputNames().end())
      return graph.emitOpError("has no input 'sample_weight': run --dg-weigh-samples first"), failure();
    Value weights = graph.getBody().getArgument(name - graph.getInputNames().begin());
    Location loc = graph.getLoc();
    OpBuilder builder = OpBuilder::atBlockBegin(&graph.getBody().front());
    auto sum = [&](Value value) -> Value {
      return create<ReduceSumOp>(builder, loc, value, ArrayRef<int64_t>{0}, /*keep=*/false);
    };
    TrainingScope scope;
    scope.total = sum(weights);
    Value smallest = create<ConstantOp>(builder, loc, scope.total.getType(), builder.getF64FloatAttr(1e-30),
                                        TypeAttr::get(scope.total.getType()));
    Value divisor = create<AddOp>(builder, loc, scope.total, smallest);
    scope.share = create<DivOp>(builder, loc, weights, divisor);
    scope.inverseCount = sum(create<MulOp>(builder, loc, scope.share, scope.share));
    scope.sampleIndex = [graph, numbers = Value(), rows = tensorOf(weights).getShape()]() mutable {
      if (!numbers)
        numbers =
            graph.addInput(sampleIndexName, RankedTensorType::get(rows, IntegerType::get(graph.getContext(), 64)));
      return numbers;
    };
    return scope;
  }

  static LogicalResult replace(GraphOp graph, TrainingOp op, TrainingScope &scope) {
    PlaceAttr place = getPlace(op);
    PartsOf parts(place);
    OpBuilder builder(op->getContext(), &parts);
    builder.setInsertionPoint(op);
    FailureOr<SmallVector<Value>> results = op.buildTraining(builder, scope);
    if (failed(results))
      return failure();
    op->replaceAllUsesWith(*results);
    op->erase();

    PartsOf updates(withOrigin(place, place.getOrigin(), Phase::update));
    OpBuilder end(graph.getContext(), &updates);
    end.setInsertionPoint(graph.getReturn());
    for (auto [state, observed, rate] : scope.updates) {
      Location loc = state.getLoc();
      Value kept = buildScale(end, loc, state, 1 - rate), added = buildScale(end, loc, observed, rate);
      Value next = create<AddOp>(end, loc, kept, added);
      create<UpdateOp>(end, loc, next, state.getDefiningOp<ParameterOp>().getParamAttr());
    }
    scope.updates.clear();
    return success();
  }
};

} // namespace
} // namespace dg::passes
