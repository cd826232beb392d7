// SPDX-License-Identifier: Apache-2.0
// Turns the gradients that @train returns into updates of the parameters and of the optimizer's state.
#include "ir/GraphOps.h"
#include "ir/OptimizerOps.h"
#include "passes/OptimizerSpec.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_ADDOPTIMIZER
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct AddOptimizerPass : impl::AddOptimizerBase<AddOptimizerPass> {
  using AddOptimizerBase::AddOptimizerBase;

  void runOnOperation() override {
    auto graph = getOperation().lookupSymbol<GraphOp>("train");
    if (!graph)
      return;
    std::string text = optimizer;
    if (auto own = getOperation()->getAttrOfType<StringAttr>("dg.optimizer"); own && text.empty())
      text = own.str();
    if (text.empty()) {
      graph.emitOpError("is to be trained, but nothing names an optimizer: give --optimizer, for example sgd:lr=0.01");
      return signalPassFailure();
    }
    Result<OptimizerSpec> spec = parseOptimizer(text);
    if (!spec) {
      graph.emitError(spec.status().message());
      return signalPassFailure();
    }
    addUpdates(graph, *spec);
  }

private:
  void addUpdates(GraphOp graph, const OptimizerSpec &spec) {
    llvm::StringMap<ParameterOp> parameters;
    for (auto parameter : graph.getBody().front().getOps<ParameterOp>())
      parameters[parameter.getParam()] = parameter;
    ReturnOp end = graph.getReturn();
    OpBuilder builder(end);
    SmallVector<Value> kept;
    SmallVector<Attribute> keptNames;
    for (auto [index, value] : llvm::enumerate(end.getOperands())) {
      std::string name = end.getResultName(index);
      StringRef text = name;
      if (!text.consume_front("grad ") || !parameters.contains(text)) {
        kept.push_back(value);
        keptNames.push_back(builder.getStringAttr(name));
        continue;
      }
      addUpdate(builder, parameters.lookup(text), value, spec);
    }
    builder.create<ReturnOp>(end.getLoc(), kept, builder.getArrayAttr(keptNames), PlaceAttr());
    end.erase();
  }

  void addUpdate(OpBuilder &builder, ParameterOp parameter, Value grad, const OptimizerSpec &spec) {
    Location location = parameter.getLoc();
    PlaceAttr place = withLabel(withOrigin(getPlace(parameter), getPlace(parameter).getOrigin(), Phase::update),
                                parameter.getParam());
    auto number = [&](double value) { return builder.getF64FloatAttr(value); };
    auto state = [&](StringRef suffix) -> Value {
      return builder.create<ParameterOp>(
          location, parameter.getType(), builder.getStringAttr(parameter.getParam() + "." + suffix),
          TypeAttr::get(parameter.getType()), InitAttr::get(builder.getContext(), InitKind::constant, number(0)),
          builder.getUnitAttr(), UnitAttr(), place);
    };
    auto update = [&](Value value, StringRef name) {
      builder.create<UpdateOp>(location, value, builder.getStringAttr(name), place);
    };
    StringRef name = parameter.getParam();
    if (spec.kind == OptimizerSpec::Kind::sgd && spec.momentum == 0) {
      auto op = builder.create<SgdOp>(location, parameter.getResult(), grad, number(spec.weightDecay), place);
      return update(op.getResult(), name);
    }
    if (spec.kind == OptimizerSpec::Kind::sgd) {
      auto op = builder.create<MomentumOp>(location, parameter.getResult(), grad, state("momentum"),
                                           number(spec.momentum), spec.isNesterov ? builder.getUnitAttr() : UnitAttr(),
                                           number(spec.weightDecay), place);
      update(op.getNewParam(), name);
      return update(op.getNewVelocity(), (name + ".momentum").str());
    }
    Value first = state("adam_m"), second = state("adam_v");
    bool isDecoupled = spec.kind == OptimizerSpec::Kind::adamw;
    auto op = builder.create<AdamOp>(location, parameter.getResult(), grad, first, second, number(spec.beta1),
                                     number(spec.beta2), number(spec.epsilon), number(spec.weightDecay),
                                     isDecoupled ? builder.getUnitAttr() : UnitAttr(), place);
    update(op.getNewParam(), name);
    update(op.getNewFirst(), (name + ".adam_m").str());
    update(op.getNewSecond(), (name + ".adam_v").str());
  }
};

} // namespace
} // namespace dg::passes
