// SPDX-License-Identifier: Apache-2.0
// Turns the gradients that @train returns into updates of the parameters and of the optimizer's state.
#include "ir/ElementwiseOps.h"
#include "ir/GraphOps.h"
#include "ir/OptimizerOps.h"
#include "ir/ShapeOps.h"
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
  struct Gradient {
    ParameterOp parameter;
    Value value;
  };

  void addUpdates(GraphOp graph, const OptimizerSpec &spec) {
    llvm::StringMap<ParameterOp> parameters;
    for (auto parameter : graph.getBody().front().getOps<ParameterOp>())
      parameters[parameter.getParam()] = parameter;
    ReturnOp end = graph.getReturn();
    OpBuilder builder(end);
    SmallVector<Value> kept;
    SmallVector<Attribute> keptNames;
    SmallVector<Gradient> gradients;
    for (auto [index, value] : llvm::enumerate(end.getOperands())) {
      std::string name = end.getResultName(index);
      StringRef text = name;
      if (text.consume_front("grad ") && parameters.contains(text)) {
        gradients.push_back({parameters.lookup(text), value});
        continue;
      }
      kept.push_back(value);
      keptNames.push_back(builder.getStringAttr(name));
    }
    // The norm of all gradients is summed where the loss is made, on the last stage.
    Operation *loss = end.getNumOperands() ? end.getOperand(0).getDefiningOp() : nullptr;
    Value square = spec.clipNorm > 0 ? sumOfSquares(builder, gradients, loss) : Value();
    // In the order in which gradients are made: the first are reduced, and can be applied, while the last travel.
    llvm::sort(gradients, [](const Gradient &a, const Gradient &b) { return isMadeBefore(a.value, b.value); });
    for (const Gradient &gradient : gradients)
      addUpdate(builder, gradient.parameter, clip(builder, gradient, square, spec), spec);
    builder.create<ReturnOp>(end.getLoc(), kept, builder.getArrayAttr(keptNames), PlaceAttr());
    end.erase();
  }

  static bool isMadeBefore(Value a, Value b) {
    Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
    return first && second ? first->isBeforeInBlock(second) : !first && second;
  }

  static PlaceAttr placeOf(ParameterOp parameter) {
    return withLabel(withOrigin(getPlace(parameter), getPlace(parameter).getOrigin(), Phase::update),
                     parameter.getParam());
  }

  /// Σ x² over all elements, a scalar.
  static Value squareOf(OpBuilder &builder, Location location, Value value, PlaceAttr place) {
    SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, tensorOf(value).getRank()));
    Value square = builder.create<MulOp>(location, value, value, place);
    return dims.empty() ? square
                        : builder.create<ReduceSumOp>(location, square, dims, /*keep=*/false, place).getResult();
  }

  /// Each gradient's own square stands with its parameter, so that one number for each travels between stages.
  static Value sumOfSquares(OpBuilder &builder, ArrayRef<Gradient> gradients, Operation *loss) {
    Value sum;
    for (auto [parameter, value] : gradients) {
      Value square = squareOf(builder, parameter.getLoc(), value, placeOf(parameter));
      PlaceAttr place = getPlace(loss ? loss : parameter.getOperation());
      place = withLabel(withOrigin(place, place.getOrigin(), Phase::update), "gradient norm");
      sum = sum ? builder.create<AddOp>(parameter.getLoc(), sum, square, place).getResult() : square;
    }
    return sum;
  }

  static Value clip(OpBuilder &builder, const Gradient &gradient, Value square, const OptimizerSpec &spec) {
    if (!square && spec.clipValue == 0)
      return gradient.value;
    ParameterOp parameter = gradient.parameter;
    return builder.create<ClipGradientOp>(parameter.getLoc(), gradient.value, square,
                                          builder.getF64FloatAttr(spec.clipNorm),
                                          builder.getF64FloatAttr(spec.clipValue), placeOf(parameter));
  }

  static void addUpdate(OpBuilder &builder, ParameterOp parameter, Value grad, const OptimizerSpec &spec) {
    Location location = parameter.getLoc();
    PlaceAttr place = placeOf(parameter);
    StringRef name = parameter.getParam();
    auto number = [&](double value) { return builder.getF64FloatAttr(value); };
    auto decay = number(spec.weightDecayOf(name));
    auto state = [&](StringRef suffix, double start = 0) -> Value {
      return builder.create<ParameterOp>(location, parameter.getType(), builder.getStringAttr(name + "." + suffix),
                                         TypeAttr::get(parameter.getType()),
                                         InitAttr::get(builder.getContext(), InitKind::constant, number(start)),
                                         builder.getUnitAttr(), UnitAttr(), place);
    };
    auto update = [&](Value value, const Twine &target) {
      builder.create<UpdateOp>(location, value, builder.getStringAttr(target), place);
    };
    Value param = parameter.getResult();
    switch (spec.kind) {
    case OptimizerSpec::Kind::sgd: {
      if (spec.momentum == 0)
        return update(builder.create<SgdOp>(location, param, grad, decay, place), name);
      auto op = builder.create<MomentumOp>(location, param, grad, state("momentum"), number(spec.momentum),
                                           spec.nesterov != 0 ? builder.getUnitAttr() : UnitAttr(), decay, place);
      update(op.getNewParam(), name);
      return update(op.getNewVelocity(), name + ".momentum");
    }
    case OptimizerSpec::Kind::adam:
    case OptimizerSpec::Kind::adamw: {
      Value first = state("adam_m"), second = state("adam_v");
      bool isDecoupled = spec.kind == OptimizerSpec::Kind::adamw;
      auto op =
          builder.create<AdamOp>(location, param, grad, first, second, number(spec.beta1), number(spec.beta2),
                                 number(spec.epsilon), decay, isDecoupled ? builder.getUnitAttr() : UnitAttr(), place);
      update(op.getNewParam(), name);
      update(op.getNewFirst(), name + ".adam_m");
      return update(op.getNewSecond(), name + ".adam_v");
    }
    case OptimizerSpec::Kind::adagrad: {
      auto op = builder.create<AdagradOp>(location, param, grad, state("adagrad_sum", spec.initialSum),
                                          number(spec.epsilon), number(spec.lrDecay), decay, place);
      update(op.getNewParam(), name);
      return update(op.getNewSum(), name + ".adagrad_sum");
    }
    case OptimizerSpec::Kind::rmsprop: {
      Value square = state("rmsprop_square"), velocity = state("rmsprop_velocity");
      auto op = builder.create<RmspropOp>(location, param, grad, square, velocity, number(spec.alpha),
                                          number(spec.momentum), number(spec.epsilon), decay, place);
      update(op.getNewParam(), name);
      update(op.getNewSquare(), name + ".rmsprop_square");
      return update(op.getNewVelocity(), name + ".rmsprop_velocity");
    }
    case OptimizerSpec::Kind::lamb: {
      Value first = state("lamb_m"), second = state("lamb_v");
      auto op = builder.create<LambDirectionOp>(location, param, grad, first, second, number(spec.beta1),
                                                number(spec.beta2), number(spec.epsilon), decay, place);
      Value paramSquare = squareOf(builder, location, param, place),
            directionSquare = squareOf(builder, location, op.getDirection(), place);
      update(builder.create<LambStepOp>(location, param, op.getDirection(), paramSquare, directionSquare, place), name);
      update(op.getNewFirst(), name + ".lamb_m");
      return update(op.getNewSecond(), name + ".lamb_v");
    }
    case OptimizerSpec::Kind::lion: {
      auto op = builder.create<LionOp>(location, param, grad, state("lion_m"), number(spec.beta1), number(spec.beta2),
                                       decay, place);
      update(op.getNewParam(), name);
      return update(op.getNewFirst(), name + ".lion_m");
    }
    }
  }
};

} // namespace
} // namespace dg::passes
