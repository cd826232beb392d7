// SPDX-License-Identifier: Apache-2.0
// Turns the gradients that @train returns into updates of the parameters and of the optimizer's state.
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/ops/training/OptimizerOps.h"
#include "passes/Passes.h"
#include "passes/UsageError.h"
#include "passes/train/LossScale.h"
#include "passes/train/NamePattern.h"
#include "passes/train/OptimizerSpec.h"
#include "runtime/plan/MetricPorts.h"

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
      emitOpUsageError(graph)
          << "is to be trained, but nothing names an optimizer: give --optimizer, for example sgd:lr=0.01";
      return signalPassFailure();
    }
    Result<OptimizerSpec> spec = parseOptimizer(text);
    if (!spec) {
      graph.emitError(spec.status().message());
      return signalPassFailure();
    }
    if (failed(checkGroups(graph, *spec, text)) || failed(addUpdates(graph, *spec)))
      signalPassFailure();
  }

private:
  /// A group that names nothing is a mistake of the user: what it was to change would be as before.
  static LogicalResult checkGroups(GraphOp graph, const OptimizerSpec &spec, StringRef text) {
    for (const OptimizerSpec::Group &group : spec.groups) {
      auto parameters = graph.getBody().front().getOps<ParameterOp>();
      auto isNamed = [&](ParameterOp parameter) {
        return !parameter.getState() && matchesPattern(parameter.getParam(), group.pattern);
      };
      if (llvm::any_of(parameters, isNamed) && llvm::none_of(parameters, [&](ParameterOp parameter) {
            return isNamed(parameter) && spec.isRuledBy(group, parameter.getParam());
          }))
        return emitUsageError(graph)
               << "optimizer '" << text << "': what '" << group.pattern
               << "' says is overruled for all of its parameters by patterns after it: the last one counts; leave it "
                  "out, or write it after them";
      if (llvm::none_of(parameters, isNamed))
        return emitUsageError(graph) << "optimizer '" << text << "': has no parameter that '" << group.pattern
                                     << "' names, expected a pattern such as '*.bias' that matches parameters";
    }
    return success();
  }

  struct Gradient {
    ParameterOp parameter;
    Value value;
  };

  LogicalResult addUpdates(GraphOp graph, const OptimizerSpec &spec) {
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
    Value guard;
    if (ParameterOp scale = parameters.lookup(lossScaleName); scale && scale.getState())
      guard = unscale(builder, gradients, scale);
    Value square;
    if (!gradients.empty() && (spec.clipNorm > 0 || spec.gradNorm != 0)) {
      PlaceAttr place = getPlace(loss ? loss : gradients.back().parameter.getOperation());
      place = withLabel(withOrigin(place, place.getOrigin(), Phase::update), "gradient norm");
      square = sumOfSquares(builder, gradients, place);
      kept.push_back(builder.create<SqrtOp>(square.getLoc(), square, place));
      keptNames.push_back(builder.getStringAttr(plan::gradientNormPort));
    }
    // In the order in which gradients are made: the first are reduced, and can be applied, while the last travel.
    llvm::sort(gradients, [](const Gradient &a, const Gradient &b) { return isMadeBefore(a.value, b.value); });
    for (const Gradient &gradient : gradients)
      addUpdate(builder, gradient.parameter, clip(builder, gradient, square, spec), guard, spec);
    create<ReturnOp>(builder, end.getLoc(), kept, builder.getArrayAttr(keptNames));
    end.erase();
    return checkStates(graph, parameters);
  }

  /// The optimizer's state of parameter "a" is "a.momentum", which may be a parameter's own name.
  static LogicalResult checkStates(GraphOp graph, const llvm::StringMap<ParameterOp> &parameters) {
    for (auto state : graph.getBody().front().getOps<ParameterOp>())
      if (ParameterOp parameter = parameters.lookup(state.getParam()); parameter && parameter != state)
        return parameter.emitOpError() << "'" << parameter.getParam()
                                       << "' has the name of what the optimizer keeps for another parameter: give it "
                                          "another name";
    return success();
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

  /// Divides the gradients by the scale of the loss, and adapts it: a step with a gradient that is not finite is
  /// skipped and halves it (not below 1), many steps without one double it. Returns the guard of the updates: NaN,
  /// or how many steps were skipped before. A sum of a gradient's elements is finite where they all are; one number for
  /// each parameter travels to the stage of the loss, and two back to each stage.
  Value unscale(OpBuilder &builder, MutableArrayRef<Gradient> gradients, ParameterOp scale) {
    Location location = scale.getLoc();
    PlaceAttr place = withLabel(withOrigin(getPlace(scale), getPlace(scale).getOrigin(), Phase::update), lossScaleName);
    Value sum;
    for (auto [parameter, value] : gradients) {
      SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, tensorOf(value).getRank()));
      Value own =
          dims.empty()
              ? value
              : builder.create<ReduceSumOp>(location, value, dims, /*keep=*/false, placeOf(parameter)).getResult();
      sum = sum ? builder.create<AddOp>(location, sum, own, place).getResult() : own;
    }
    auto number = [&](double value) -> Value {
      return builder.create<ConstantOp>(location, scale.getType(), builder.getF64FloatAttr(value),
                                        TypeAttr::get(scale.getType()), place);
    };
    Value excess = builder.create<SubOp>(location, sum, sum, place); // 0 or NaN
    Value inverse = builder.create<DivOp>(location, number(1), scale.getResult(), place);
    for (Gradient &gradient : gradients)
      gradient.value = builder.create<MulOp>(location, gradient.value, inverse, placeOf(gradient.parameter));

    auto addCounter = [&](StringRef name) -> Value {
      return builder.create<ParameterOp>(
          location, scale.getType(), builder.getStringAttr(name), TypeAttr::get(scale.getType()),
          InitAttr::get(builder.getContext(), InitKind::constant, builder.getF64FloatAttr(0)), builder.getUnitAttr(),
          UnitAttr(), place);
    };
    std::string counterName = (Twine(lossScaleName) + ".steps").str(),
                skippedName = (Twine(lossScaleName) + ".skipped").str();
    Value counter = addCounter(counterName), skipped = addCounter(skippedName);
    auto choose = [&](Value condition, Value then, Value otherwise) -> Value {
      return builder.create<SelectOp>(location, condition, then, otherwise, place);
    };
    auto compare = [&](Value a, Value b, StringRef predicate) -> Value {
      return builder.create<CompareOp>(location, a, b, builder.getStringAttr(predicate), place);
    };
    Value isFinite = compare(excess, number(0), "eq");
    Value steps = builder.create<AddOp>(location, counter, number(1), place);
    Value isFull = compare(steps, number(double(growthInterval)), "ge");
    Value grown = choose(isFull, builder.create<AddOp>(location, scale.getResult(), scale.getResult(), place), scale);
    Value halved = builder.create<MaxOp>(
        location, builder.create<ScaleOp>(location, scale.getResult(), APFloat(0.5), place), number(1), place);
    builder.create<UpdateOp>(location, choose(isFinite, grown, halved), builder.getStringAttr(lossScaleName), place);
    Value counted = choose(isFull, number(0), steps);
    builder.create<UpdateOp>(location, choose(isFinite, counted, number(0)), builder.getStringAttr(counterName), place);
    Value more = builder.create<AddOp>(location, skipped, number(1), place);
    builder.create<UpdateOp>(location, choose(isFinite, skipped, more), builder.getStringAttr(skippedName), place);
    return builder.create<AddOp>(location, skipped, excess, place);
  }

  /// Each gradient's own square stands with its parameter, so that one number for each travels between stages.
  static Value sumOfSquares(OpBuilder &builder, ArrayRef<Gradient> gradients, PlaceAttr place) {
    Value sum;
    for (auto [parameter, value] : gradients) {
      Value square = squareOf(builder, parameter.getLoc(), value, placeOf(parameter));
      sum = sum ? builder.create<AddOp>(parameter.getLoc(), sum, square, place).getResult() : square;
    }
    return sum;
  }

  static Value clip(OpBuilder &builder, const Gradient &gradient, Value square, const OptimizerSpec &spec) {
    if (spec.clipNorm == 0 && spec.clipValue == 0)
      return gradient.value;
    ParameterOp parameter = gradient.parameter;
    return builder.create<ClipGradientOp>(parameter.getLoc(), gradient.value, spec.clipNorm > 0 ? square : Value(),
                                          builder.getF64FloatAttr(spec.clipNorm),
                                          builder.getF64FloatAttr(spec.clipValue), placeOf(parameter));
  }

  static void addUpdate(OpBuilder &builder, ParameterOp parameter, Value grad, Value guard, const OptimizerSpec &spec) {
    Location location = parameter.getLoc();
    PlaceAttr place = placeOf(parameter);
    StringRef name = parameter.getParam();
    auto number = [&](double value) { return builder.getF64FloatAttr(value); };
    auto decay = number(spec.weightDecayOf(name));
    double factor = spec.rateFactorOf(name);
    auto rate = factor == 1 ? FloatAttr() : number(factor);
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
        return update(builder.create<SgdOp>(location, param, grad, guard, decay, rate, place), name);
      auto op = builder.create<MomentumOp>(location, param, grad, state("momentum"), guard, number(spec.momentum),
                                           spec.nesterov != 0 ? builder.getUnitAttr() : UnitAttr(), decay, rate, place);
      update(op.getNewParam(), name);
      return update(op.getNewVelocity(), name + ".momentum");
    }
    case OptimizerSpec::Kind::adam:
    case OptimizerSpec::Kind::adamw: {
      Value first = state("adam_m"), second = state("adam_v");
      bool isDecoupled = spec.kind == OptimizerSpec::Kind::adamw;
      auto op = builder.create<AdamOp>(location, param, grad, first, second, guard, number(spec.beta1),
                                       number(spec.beta2), number(spec.epsilon), decay, rate,
                                       isDecoupled ? builder.getUnitAttr() : UnitAttr(), place);
      update(op.getNewParam(), name);
      update(op.getNewFirst(), name + ".adam_m");
      return update(op.getNewSecond(), name + ".adam_v");
    }
    case OptimizerSpec::Kind::adagrad: {
      auto op = builder.create<AdagradOp>(location, param, grad, state("adagrad_sum", spec.initialSum), guard,
                                          number(spec.epsilon), number(spec.lrDecay), decay, rate, place);
      update(op.getNewParam(), name);
      return update(op.getNewSum(), name + ".adagrad_sum");
    }
    case OptimizerSpec::Kind::rmsprop: {
      Value square = state("rmsprop_square"), velocity = state("rmsprop_velocity");
      auto op = builder.create<RmspropOp>(location, param, grad, square, velocity, guard, number(spec.alpha),
                                          number(spec.momentum), number(spec.epsilon), decay, rate, place);
      update(op.getNewParam(), name);
      update(op.getNewSquare(), name + ".rmsprop_square");
      return update(op.getNewVelocity(), name + ".rmsprop_velocity");
    }
    case OptimizerSpec::Kind::lamb: {
      Value first = state("lamb_m"), second = state("lamb_v");
      auto op = builder.create<LambDirectionOp>(location, param, grad, first, second, guard, number(spec.beta1),
                                                number(spec.beta2), number(spec.epsilon), decay, place);
      Value paramSquare = squareOf(builder, location, param, place),
            directionSquare = squareOf(builder, location, op.getDirection(), place);
      update(builder.create<LambStepOp>(location, param, op.getDirection(), paramSquare, directionSquare, guard, rate,
                                        place),
             name);
      update(op.getNewFirst(), name + ".lamb_m");
      return update(op.getNewSecond(), name + ".lamb_v");
    }
    case OptimizerSpec::Kind::lion: {
      auto op = builder.create<LionOp>(location, param, grad, state("lion_m"), guard, number(spec.beta1),
                                       number(spec.beta2), decay, rate, place);
      update(op.getNewParam(), name);
      return update(op.getNewFirst(), name + ".lion_m");
    }
    }
  }
};

} // namespace
} // namespace dg::passes
