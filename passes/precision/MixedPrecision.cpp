// SPDX-License-Identifier: Apache-2.0
// Casts what gains to bf16 or f16 and keeps what must stay, on the model as it was written: parts, training forms and
// gradients then have the types of what they are made of. Parameters stay f32, and with them the optimizer's state and
// checkpoints; an op of 16 bits reads a cast of them.
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/ops/structure/LiteralOps.h"
#include "passes/Passes.h"
#include "passes/precision/PrecisionRules.h"
#include "passes/train/NamePattern.h"

#include <map>

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_MIXEDPRECISION
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct Override {
  std::string text; ///< as the user gave it
  StringRef pattern;
  Type type;
  bool isUsed = false;

  /// Names the op itself, its kind, or a parameter that it reads.
  bool matches(Operation *op) const {
    return matchesPattern(getPlace(op).getLabel().getValue(), pattern) ||
           matchesPattern(op->getName().stripDialect(), pattern) || llvm::any_of(op->getOperands(), [&](Value operand) {
             auto parameter = operand.getDefiningOp<ParameterOp>();
             return parameter && matchesPattern(parameter.getParam(), pattern);
           });
  }
};

class Caster {
public:
  Caster(GraphOp graph, Type low, MutableArrayRef<Override> overrides, SmallVectorImpl<Attribute> &reasons)
      : graph(graph), low(low), overrides(overrides), reasons(reasons) {}

  LogicalResult run() {
    for (Operation &op : graph.getBody().front())
      for (Value result : op.getResults())
        written[result] = result.getType();
    SmallVector<Operation *> ops;
    for (Operation &op : graph.getBody().front())
      if (!isa<ParameterOp, ConstantOp, LiteralOp, CastOp>(op))
        ops.push_back(&op);
    for (Operation *op : ops)
      if (failed(cast(op)))
        return failure();
    return success();
  }

private:
  static bool isFloat(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && (tensor.getElementType().isF32() || isHalf(tensor.getElementType()));
  }
  static Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

  /// The type of an operand before anything was cast.
  Type writtenElement(Value value) const {
    auto known = written.find(value);
    return getElementTypeOrSelf(known == written.end() ? value.getType() : known->second);
  }

  struct Decision {
    Type type; ///< null: as it was written
    Casting kind = Casting::kept;
    std::string why;
  };

  Decision decide(Operation *op) {
    PrecisionRule rule = precisionRuleOf(op);
    for (Override &given : overrides)
      if (given.matches(op)) {
        given.isUsed = true;
        bool isLow = isHalf(given.type);
        Casting kind = !isLow ? Casting::kept : rule.kind == Casting::rows ? Casting::rows : Casting::low;
        return {isLow ? given.type : Type(), kind, "--precision-override " + given.text};
      }
    if (isHalf(low) && (rule.kind == Casting::low || rule.kind == Casting::narrows))
      return {low, rule.kind, rule.why.str()};
    if (rule.kind == Casting::kept)
      return {{}, rule.kind, rule.why.str()};
    for (Value operand : op->getOperands())
      if (isFloat(operand.getType()) && elementOf(operand) != writtenElement(operand))
        return {elementOf(operand), rule.kind, rule.why.str()};
    return {{}, Casting::kept, isHalf(low) ? rule.why.str() : "--precision f32"};
  }

  LogicalResult cast(Operation *op) {
    bool hasFloats = llvm::any_of(op->getOperands(), [](Value v) { return isFloat(v.getType()); });
    bool isEnd = isa<ReturnOp>(op);
    Decision decision = isEnd || !hasFloats || op->getNumRegions() > 0 ? Decision() : decide(op);
    bool castsOperands = decision.type && decision.kind != Casting::narrows;
    for (OpOperand &operand : op->getOpOperands()) {
      if (!isFloat(operand.get().getType()))
        continue;
      Type type = writtenElement(operand.get());
      bool isParameter = operand.get().getDefiningOp<ParameterOp>();
      if (castsOperands && type.isF32() && !(decision.kind == Casting::rows && isParameter))
        type = decision.type;
      operand.set(castTo(operand.get(), type, op));
    }
    if (isEnd || !hasFloats)
      return success();
    if (failed(inferAgain(op)))
      return failure();
    if (decision.kind == Casting::narrows && decision.type)
      narrowResults(op, decision.type);
    explain(op, decision);
    return success();
  }

  /// Sets the result types that follow from the operands'.
  LogicalResult inferAgain(Operation *op) {
    auto inferring = dyn_cast<InferTypeOpInterface>(op);
    if (!inferring || op->getNumRegions() > 0)
      return success();
    SmallVector<Type> types;
    if (failed(inferring.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(), op->getAttrDictionary(),
                                          op->getPropertiesStorage(), op->getRegions(), types)))
      return failure();
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types))
      result.setType(type);
    return success();
  }

  /// Narrowed where it is made, so that it travels with half the bytes; widened where it is needed.
  Value castTo(Value value, Type type, Operation *user) {
    if (elementOf(value) == type)
      return value;
    Value &known = casts[{value.getAsOpaquePointer(), type.getAsOpaquePointer()}];
    if (known)
      return known;
    Operation *producer = value.getDefiningOp();
    bool isAtProducer = producer && !isa<ParameterOp, ConstantOp, LiteralOp>(producer) && isHalf(type);
    PlaceAttr place = getPlace(isAtProducer ? producer : user);
    if (auto parameter = dyn_cast_or_null<ParameterOp>(producer))
      place = withLabel(place, parameter.getParam());
    OpBuilder builder(user);
    return known = builder.create<CastOp>(value.getLoc(), value, TypeAttr::get(type), place);
  }

  void narrowResults(Operation *op, Type type) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    for (Value result : op->getResults()) {
      if (!isFloat(result.getType()) || elementOf(result) == type)
        continue;
      auto narrow = builder.create<CastOp>(op->getLoc(), result, TypeAttr::get(type), getPlace(op));
      written[narrow.getResult()] = result.getType();
      result.replaceAllUsesExcept(narrow.getResult(), narrow);
    }
  }

  void explain(Operation *op, const Decision &decision) {
    Builder builder(op->getContext());
    Type type = decision.type ? decision.type : op->getNumResults() ? elementOf(op->getResult(0)) : Type();
    if (!type || !isa<FloatType>(type))
      return;
    reasons.push_back(PrecisionAttr::get(op->getContext(), getPlace(op).getLabel(),
                                         builder.getStringAttr(op->getName().stripDialect()), type,
                                         builder.getStringAttr(decision.why)));
  }

  GraphOp graph;
  Type low;
  MutableArrayRef<Override> overrides;
  SmallVectorImpl<Attribute> &reasons;
  llvm::DenseMap<Value, Type> written; ///< types as the model has them
  std::map<std::pair<const void *, const void *>, Value> casts;
};

struct MixedPrecisionPass : impl::MixedPrecisionBase<MixedPrecisionPass> {
  using MixedPrecisionBase::MixedPrecisionBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Type low = parsePrecision(&getContext(), precision);
    if (!low) {
      module.emitError() << "is to be computed in '" << precision << "', expected f32, bf16 or f16";
      return signalPassFailure();
    }
    SmallVector<Override> given;
    for (const std::string &text : overrides) {
      auto [pattern, type] = StringRef(text).rsplit('=');
      given.push_back({text, pattern, parsePrecision(&getContext(), type)});
      if (pattern.empty() || !given.back().type) {
        module.emitError() << "has the precision override '" << text
                           << "', expected PATTERN=f32, PATTERN=bf16 or PATTERN=f16, as 'head.*=f32'";
        return signalPassFailure();
      }
    }
    SmallVector<Attribute> reasons;
    for (auto graph : module.getOps<GraphOp>())
      if (failed(Caster(graph, low, given, reasons).run()))
        return signalPassFailure();
    for (const Override &unused : given)
      if (!unused.isUsed) {
        module.emitError() << "has no op that the precision override '" << unused.text
                           << "' names, expected the name of an op, its kind, or a parameter that it reads";
        return signalPassFailure();
      }
    module->setAttr(precisionName, ArrayAttr::get(&getContext(), reasons));
  }
};

} // namespace
} // namespace dg::passes
