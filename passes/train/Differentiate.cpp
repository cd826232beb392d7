// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation of @loss by the ops' own gradients. Fan-out is summed in a fixed order; ops that lead to
// no trained parameter get no gradient; an op on the path without one is an error at the op.
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "passes/Passes.h"
#include "passes/train/LossScale.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

/// Marks every op that is built for the gradient of one forward op.
class MarkBackward : public OpBuilder::Listener {
public:
  void belongTo(Operation *forward) {
    place = withOrigin(getPlace(forward), getPlace(forward).getOrigin(), Phase::backward);
  }
  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint) override { setPlace(op, place); }

private:
  PlaceAttr place;
};

struct DifferentiatePass : impl::DifferentiateBase<DifferentiatePass> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    numberForwardOps();
    auto graph = getOperation().lookupSymbol<GraphOp>("loss");
    if (!graph)
      return;
    graph.setSymName("train");
    if (failed(differentiate(graph)))
      signalPassFailure();
  }

private:
  /// 1, or a state of the job by which all gradients are multiplied.
  Value seed(OpBuilder &builder, Value loss) {
    auto type = TypeAttr::get(loss.getType());
    if (lossScale == 0)
      return create<ConstantOp>(builder, loss.getLoc(), loss.getType(), builder.getF64FloatAttr(1.0), type);
    auto init = InitAttr::get(&getContext(), InitKind::constant, builder.getF64FloatAttr(lossScale));
    return create<ParameterOp>(builder, loss.getLoc(), loss.getType(), builder.getStringAttr(lossScaleName), type, init,
                               builder.getUnitAttr(), UnitAttr());
  }

  /// Ops that no pass has numbered come after those that --dg-number-ops did.
  void numberForwardOps() {
    for (auto graph : getOperation().getOps<GraphOp>()) {
      int64_t origin = 0;
      for (Operation &op : graph.getBody().front())
        origin = std::max(origin, getPlace(&op).getOrigin() + 1);
      for (Operation &op : graph.getBody().front())
        if (getPlace(&op).getOrigin() < 0)
          setPlace(&op, withOrigin(getPlace(&op), origin++, Phase::forward));
    }
  }

  LogicalResult differentiate(GraphOp graph) {
    llvm::DenseSet<Value> leadsToParameter;
    SmallVector<Operation *> path;
    SmallVector<ParameterOp> parameters;
    for (Operation &op : graph.getBody().front()) {
      auto parameter = dyn_cast<ParameterOp>(op);
      bool isTrained = parameter && !parameter.getFrozen() && !parameter.getState();
      if (isTrained && !isa<FloatType>(tensorOf(parameter.getResult()).getElementType()))
        return parameter.emitOpError() << "'" << parameter.getParam() << "' has type " << parameter.getType()
                                       << ", expected floats, since it is to be trained: mark it frozen, or dg.cast "
                                          "floats where integers are needed";
      if (isTrained)
        parameters.push_back(parameter);
      if (!isTrained && llvm::none_of(op.getOperands(), [&](Value v) { return leadsToParameter.contains(v); }))
        continue;
      for (Value result : op.getResults())
        leadsToParameter.insert(result);
      path.push_back(&op);
    }

    ReturnOp end = graph.getReturn();
    Value loss = end.getOperand(0);
    if (!leadsToParameter.contains(loss))
      return end.emitOpError("returns a loss that depends on no parameter: there is nothing to train");
    MarkBackward listener;
    OpBuilder builder(&getContext(), &listener);
    builder.setInsertionPoint(end);
    listener.belongTo(loss.getDefiningOp());

    // Summands of each value's gradient, in the order in which the uses were met, last use first.
    llvm::DenseMap<Value, SmallVector<Value>> summands;
    summands[loss].push_back(seed(builder, loss));
    auto gradientOf = [&](Value value) -> Value {
      auto found = summands.find(value);
      if (found == summands.end())
        return {};
      Value sum = found->second.front();
      for (Value next : ArrayRef(found->second).drop_front())
        sum = create<AddOp>(builder, value.getLoc(), sum, next);
      return sum;
    };

    SmallVector<Value> results(end.getOperands());
    SmallVector<Attribute> names;
    for (unsigned index = 0; index < end.getNumOperands(); ++index)
      names.push_back(builder.getStringAttr(end.getResultName(index)));
    llvm::DenseMap<Operation *, Value> parameterGradients;
    for (Operation *op : llvm::reverse(path)) {
      if (isa<ReturnOp>(op))
        continue;
      listener.belongTo(op);
      SmallVector<Value> outputGrads;
      for (Value result : op->getResults())
        outputGrads.push_back(gradientOf(result));
      if (llvm::none_of(outputGrads, [](Value v) { return bool(v); }))
        continue;
      if (isa<ParameterOp>(op)) {
        parameterGradients[op] = outputGrads[0];
        continue;
      }
      auto differentiable = dyn_cast<GradientOp>(op);
      if (!differentiable)
        return op->emitOpError("has no gradient, but a trained parameter lies behind it");
      FailureOr<SmallVector<Value>> operandGrads = differentiable.buildGradients(builder, outputGrads);
      if (failed(operandGrads))
        return failure();
      for (auto [operand, grad] : llvm::zip_equal(op->getOperands(), *operandGrads))
        if (grad && leadsToParameter.contains(operand))
          summands[operand].push_back(grad);
    }
    for (ParameterOp parameter : parameters) {
      Value grad = parameterGradients.lookup(parameter);
      if (!grad)
        return parameter.emitOpError()
               << "'" << parameter.getParam()
               << "' is trained but the loss does not depend on it: mark it frozen or remove it";
      results.push_back(grad);
      names.push_back(builder.getStringAttr("grad " + parameter.getParam()));
    }
    auto last = create<ReturnOp>(builder, end.getLoc(), results, builder.getArrayAttr(names));
    end.erase();
    // Ops give the gradients of all their operands; what leads to no parameter is not kept.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*last->getBlock())))
      if (getPlace(&op).getPhase() == Phase::backward && isOpTriviallyDead(&op))
        op.erase();
    // An update overwrites what the backward pass may still read.
    SmallVector<Operation *> updates;
    for (Operation &op : *last->getBlock())
      if (getPlace(&op).getPhase() == Phase::update)
        updates.push_back(&op);
    for (Operation *op : updates)
      op->moveBefore(last);
    return success();
  }
};

} // namespace
} // namespace dg::passes
