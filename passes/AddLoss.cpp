// SPDX-License-Identifier: Apache-2.0
// A loss for a model that has none of its own, as imported ones: `dgc --loss`.
#include "ir/GraphOps.h"
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
    OperationName name("dg." + loss, &getContext());
    if (!name.isRegistered() || !name.hasInterface<LossOp>())
      return graph.emitOpError() << "cannot have the loss '" << loss << "', expected one of: " << knownLosses();
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
      FailureOr<Value> made = makeLoss(builder, name, prediction, target, graph, isLast);
      if (failed(made) && isLast)
        return failure();
      if (failed(made))
        continue;
      end->setOperands({*made});
      end.setNamesAttr(builder.getStrArrayAttr({"loss"}));
      return success();
    }
    return failure();
  }

  /// The loss with targets of that type, which become the input y; says why not only where `explains`.
  FailureOr<Value> makeLoss(OpBuilder &builder, OperationName name, Value prediction, Type target, GraphOp graph,
                            bool explains) {
    BlockArgument y = graph.getBody().front().addArgument(target, graph.getLoc());
    OperationState state(prediction.getLoc(), name);
    state.addOperands({prediction, y});
    state.addTypes(AnyType::get(&getContext()));
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
