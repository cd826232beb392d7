// SPDX-License-Identifier: Apache-2.0
// A loss for a model that has none of its own, as imported ones: `dgc --loss`.
#include "ir/ops/structure/GraphOps.h"
#include "ir/rules/LossTerms.h"
#include "passes/Passes.h"

using namespace mlir;

namespace dg::passes {
#define GEN_PASS_DEF_ADDLOSS
#include "passes/Passes.h.inc"

namespace {

using namespace ir;

struct AddLossPass : impl::AddLossBase<AddLossPass> {
  using AddLossBase::AddLossBase;

  void runOnOperation() override {
    auto graph = getOperation().lookupSymbol<GraphOp>("loss");
    if (graph && failed(addLoss(graph)))
      signalPassFailure();
  }

private:
  LogicalResult addLoss(GraphOp graph) {
    ReturnOp end = graph.getReturn();
    auto [lossName, flags] = StringRef(loss).split(':');
    OperationName name(("dg." + lossName).str(), &getContext());
    if (!name.isRegistered() || !name.hasInterface<LossOp>())
      return graph.emitOpError() << "cannot have the loss '" << lossName << "', expected one of: " << knownLosses();
    FailureOr<NamedAttrList> attributes = parseFlags(graph, name, flags);
    if (failed(attributes))
      return failure();
    if (end.getNumOperands() == 0)
      return end.emitOpError("has no results, expected a prediction first");
    for (Attribute input : graph.getInputNames())
      if (cast<StringAttr>(input).getValue() == "y")
        return graph.emitOpError("has an input 'y' already, which --loss would add for the targets");
    Value prediction = end.getOperand(0);
    OpBuilder builder(end);
    SmallVector<Type> candidates;
    auto type = tensorOf(prediction);
    if (type.getRank() > 0)
      candidates.push_back(RankedTensorType::get(type.getShape().drop_back(), builder.getI64Type()));
    candidates.push_back(type);
    for (Type target : candidates) {
      bool isLast = target == candidates.back();
      FailureOr<Value> made = makeLoss(builder, name, *attributes, prediction, target, graph, isLast);
      if (failed(made) && isLast)
        return failure();
      if (failed(made))
        continue;
      if (std::string doubt = doubtOf(made->getDefiningOp()); !doubt.empty())
        made->getDefiningOp()->emitWarning(doubt);
      end->setOperands({*made});
      end.setNamesAttr(builder.getStrArrayAttr({"loss"}));
      return success();
    }
    return failure();
  }

  /// `label_smoothing=0.1,ignore_index=-100`: attributes of the op, whole numbers or others as it asks for them.
  FailureOr<NamedAttrList> parseFlags(GraphOp graph, OperationName name, StringRef flags) {
    NamedAttrList attributes;
    Builder builder(&getContext());
    SmallVector<StringRef> parts;
    flags.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    for (StringRef part : parts) {
      auto [flag, value] = part.split('=');
      int64_t whole = 0;
      double number = 0;
      NamedAttrList asWhole, asNumber;
      if (!value.getAsInteger(10, whole))
        asWhole.set(flag, builder.getI64IntegerAttr(whole));
      if (!value.getAsDouble(number))
        asNumber.set(flag, builder.getF64FloatAttr(number));
      auto fits = [&](NamedAttrList &attribute) {
        ScopedDiagnosticHandler silent(&getContext(), [](Diagnostic &) { return success(); });
        bool isKnown = llvm::is_contained(name.getAttributeNames(), builder.getStringAttr(flag)) && flag != placeName;
        return isKnown && !attribute.empty() &&
               succeeded(name.verifyInherentAttrs(attribute, [&] { return graph.emitOpError(); }));
      };
      if (attributes.get(flag) || (!fits(asWhole) && !fits(asNumber)))
        return graph.emitOpError() << "cannot have the loss '" << loss << "': found '" << part << "'"
                                   << (attributes.get(flag) ? " as well" : "") << ", expected " << knownFlags(name);
      attributes.append(fits(asWhole) ? asWhole : asNumber);
    }
    return attributes;
  }

  std::string knownFlags(OperationName name) {
    SmallVector<std::string> flags;
    for (StringAttr flag : name.getAttributeNames())
      if (flag != placeName)
        flags.push_back(flag.str() + "=NUMBER");
    return flags.empty() ? (name.stripDialect() + " alone").str() : llvm::join(flags, ", ");
  }

  /// The loss with targets of that type, which become the input y; says why not only where `explains`.
  FailureOr<Value> makeLoss(OpBuilder &builder, OperationName name, const NamedAttrList &attributes, Value prediction,
                            Type target, GraphOp graph, bool explains) {
    BlockArgument y = graph.getBody().front().addArgument(target, graph.getLoc());
    OperationState state(prediction.getLoc(), name);
    state.addOperands({prediction, y});
    state.addTypes(AnyType::get(&getContext()));
    state.attributes = attributes;
    state.addAttribute(placeName,
                       PlaceAttr::get(&getContext(), builder.getStringAttr("loss"), -1, Phase::forward, -1, {}));
    Operation *op = builder.create(state);
    std::optional<Location> location;
    if (explains)
      location = op->getLoc();
    SmallVector<Type> types;
    bool fits = succeeded(cast<InferTypeOpInterface>(op).inferReturnTypes(
        &getContext(), location, op->getOperands(), op->getDiscardableAttrDictionary(), op->getPropertiesStorage(),
        op->getRegions(), types));
    if (!fits) {
      op->erase();
      graph.getBody().front().eraseArgument(y.getArgNumber());
      return failure();
    }
    op->getResult(0).setType(types[0]);
    // The argument is there; its name and type are still to be noted.
    SmallVector<Attribute> names(graph.getInputNames().getValue()), inputTypes(graph.getInputTypes().getValue());
    names.push_back(builder.getStringAttr("y"));
    inputTypes.push_back(TypeAttr::get(target));
    graph.setInputNamesAttr(builder.getArrayAttr(names));
    graph.setInputTypesAttr(builder.getArrayAttr(inputTypes));
    return op->getResult(0);
  }

  std::string knownLosses() {
    SmallVector<StringRef> names;
    for (RegisteredOperationName name : getContext().getRegisteredOperations())
      if (name.getDialectNamespace() == "dg" && name.hasInterface<LossOp>())
        names.push_back(name.getStringRef().drop_front(3));
    llvm::sort(names);
    return llvm::join(names, ", ");
  }
};

} // namespace
} // namespace dg::passes
