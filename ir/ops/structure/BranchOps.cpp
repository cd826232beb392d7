// SPDX-License-Identifier: Apache-2.0
// dg.if and dg.while: types, evaluation, gradient of the former.
#include "ir/ops/structure/ControlBodies.h"
#include "ir/ops/structure/ControlSharding.h"
#include "ir/ops/structure/ControlText.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/TypeInference.h"

using namespace mlir;

namespace dg::ir {

//===- Text ------------------------------------------------------------------------------------------------------===//

static constexpr OperandGroup ifGroups[] = {{"with", ""}};
static constexpr OperandGroup whileGroups[] = {{"carry", "num_carried"}, {"with", ""}};
static constexpr ControlForm ifForm = {/*hasCondition=*/true, /*numBodies=*/2, ifGroups};
static constexpr ControlForm whileForm = {/*hasCondition=*/true, /*numBodies=*/1, whileGroups};

ParseResult IfOp::parse(OpAsmParser &parser, OperationState &state) { return parseControl(parser, state, ifForm); }
void IfOp::print(OpAsmPrinter &printer) { printControl(printer, *this, ifForm); }

ParseResult WhileOp::parse(OpAsmParser &parser, OperationState &state) {
  return parseControl(parser, state, whileForm);
}
void WhileOp::print(OpAsmPrinter &printer) { printControl(printer, *this, whileForm); }

//===- What both share -------------------------------------------------------------------------------------------===//

static bool isWhole(Region &body, size_t numArguments) {
  return !body.empty() && !body.front().empty() && isa<ReturnOp>(body.front().back()) &&
         body.getNumArguments() == numArguments;
}

static LogicalResult verifyBody(Operation *op, Region &body) {
  if (isWhole(body, op->getNumOperands() - 1))
    return success();
  return op->emitOpError() << "has a body with " << body.getNumArguments() << " arguments for "
                           << op->getNumOperands() - 1
                           << " values that it is given, expected as many, and dg.return as its last op";
}

static LogicalResult checkCondition(const Rejection &reject, Value condition) {
  auto type = tensorOf(condition);
  if (type.getRank() != 0 || !type.getElementType().isSignlessInteger(1))
    return reject("has condition ", type, ", expected one bool: tensor<i1>");
  return success();
}

//===- IfOp ------------------------------------------------------------------------------------------------------===//

LogicalResult IfOp::verify() {
  if (failed(verifyBody(*this, getThen())) || failed(verifyBody(*this, getOtherwise())))
    return failure();
  unsigned yes = returnOf(getThen()).getNumOperands(), no = returnOf(getOtherwise()).getNumOperands();
  if (yes != no || yes != getNumResults())
    return emitOpError() << "has branches that return " << yes << " and " << no << " values for " << getNumResults()
                         << " results, expected as many of each";
  return success();
}

LogicalResult IfOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, ValueRange operands,
                                     DictionaryAttr, OpaqueProperties, RegionRange regions,
                                     SmallVectorImpl<Type> &inferred) {
  Rejection reject{location, getOperationName()};
  for (Region *body : regions)
    if (!isWhole(*body, operands.size() - 1))
      return success(); // the verifier says so
  if (deferInference(context, operands, returnOf(*regions[0]).getNumOperands(), inferred))
    return success();
  if (failed(checkCondition(reject, operands[0])))
    return failure();
  SmallVector<Type> arguments(operands.drop_front().getTypes());
  for (Region *body : regions)
    if (failed(deduceBody(*body, arguments)))
      return failure();
  auto yes = returnOf(*regions[0]).getOperands(), no = returnOf(*regions[1]).getOperands();
  for (auto [a, b] : llvm::zip(yes, no))
    if (a.getType() != b.getType())
      return reject("has branches that return ", a.getType(), " and ", b.getType(), ", expected equal types");
  llvm::append_range(inferred, yes.getTypes());
  return success();
}

/// The dearer branch: which one runs is known only then.
OpCost IfOp::getCost() {
  OpCost yes = bodyCost(getThen(), 1), no = bodyCost(getOtherwise(), 1);
  return {std::max(yes.flops, no.flops), std::max(yes.bytes, no.bytes)};
}

LogicalResult IfOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  auto returned = evaluateBody(operands[0].data[0] != 0 ? getThen() : getOtherwise(), operands.drop_front(), scalars);
  if (failed(returned))
    return failure();
  std::move(returned->begin(), returned->end(), results.begin());
  return success();
}

/// An `if` of both branches' gradients: each computes its branch again, and gives zeros for what it does not read.
Gradients IfOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Location loc = getLoc();
  SmallVector<Value> operands(getOperands()), result(getNumOperands());
  SmallVector<size_t> given, asked;
  for (auto [index, grad] : llvm::enumerate(grads))
    if (grad) {
      given.push_back(index);
      operands.push_back(grad);
    }
  for (auto [index, input] : llvm::enumerate(getInputs()))
    if (isReal(input.getType()))
      asked.push_back(index);
  OperationState state(loc, getOperationName());
  state.addOperands(operands);
  for (size_t index : asked)
    state.addTypes(getInputs()[index].getType());
  for (Region *branch : {&getThen(), &getOtherwise()}) {
    Block &block = state.addRegion()->emplaceBlock();
    for (Value operand : ArrayRef(operands).drop_front())
      block.addArgument(operand.getType(), loc);
    OpBuilder inner(getContext());
    inner.setInsertionPointToStart(&block);
    ValueRange own = ValueRange(block.getArguments()).take_front(getInputs().size());
    SmallVector<Operation *> ops;
    SmallVector<Value> returned = cloneBody(inner, *branch, own, ops), returnedGrads(returned.size());
    for (auto [place, index] : llvm::enumerate(given))
      returnedGrads[index] = block.getArgument(unsigned(own.size() + place));
    Gradients ownGrads = differentiateBody(inner, own, ops, returned, returnedGrads);
    if (failed(ownGrads))
      return failure();
    SmallVector<Value> values;
    for (size_t index : asked)
      values.push_back((*ownGrads)[index] ? (*ownGrads)[index] : buildFilled(inner, loc, tensorOf(own[index]), 0));
    create<ReturnOp>(inner, loc, values, ArrayAttr());
  }
  Operation *made = builder.create(state);
  for (auto [place, index] : llvm::enumerate(asked))
    result[1 + index] = made->getResult(unsigned(place));
  return result;
}

static BodyLayout layoutOf(IfOp op) {
  BodyLayout layout;
  layout.bodies = {&op.getThen(), &op.getOtherwise()};
  layout.firstOperand = 1;
  return layout;
}

ShardingRule IfOp::getShardingRule() { return bodyShardingRule(*this, layoutOf(*this)); }
void IfOp::localize(TypeRange) { localizeBodies(*this, layoutOf(*this)); }

//===- WhileOp ---------------------------------------------------------------------------------------------------===//

LogicalResult WhileOp::verify() {
  if (failed(verifyBody(*this, getBody())))
    return failure();
  int64_t carried = int64_t(getNumCarried()), returned = returnOf(getBody()).getNumOperands();
  if (carried < 1 || carried > int64_t(getInputs().size()) || returned != carried + 1 ||
      int64_t(getNumResults()) != carried)
    return emitOpError() << "carries " << carried << " values, its body returns " << returned << " and it has "
                         << getNumResults()
                         << " results, expected at least one carried value, whether there is another "
                         << "trip and the next of each from the body, and a result for each";
  if (getMaxTrips() && int64_t(*getMaxTrips()) < 0)
    return emitOpError() << "has max_trips " << int64_t(*getMaxTrips()) << ", expected at least 0";
  return success();
}

LogicalResult WhileOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, ValueRange operands,
                                        DictionaryAttr, OpaqueProperties properties, RegionRange regions,
                                        SmallVectorImpl<Type> &inferred) {
  Rejection reject{location, getOperationName()};
  Region &body = *regions[0];
  size_t carried = size_t(properties.as<Properties *>()->num_carried.getInt());
  if (!isWhole(body, operands.size() - 1) || carried >= operands.size() ||
      returnOf(body).getNumOperands() != carried + 1)
    return success(); // the verifier says so
  if (deferInference(context, operands, carried, inferred))
    return success();
  SmallVector<Type> arguments(operands.drop_front().getTypes());
  if (failed(checkCondition(reject, operands[0])) || failed(deduceBody(body, arguments)))
    return failure();
  auto returned = returnOf(body).getOperands();
  if (returned[0].getType() != operands[0].getType())
    return reject("has a body that returns ", returned[0].getType(),
                  " first, expected whether there is another trip: tensor<i1>");
  for (auto [value, type] : llvm::zip(returned.drop_front(), arguments)) {
    if (value.getType() != type)
      return reject("carries ", type, " but its body returns ", value.getType(), ", expected equal types");
    inferred.push_back(type);
  }
  return success();
}

/// As often as it may run; once where nothing limits it, or a number that no loop is meant to reach.
OpCost WhileOp::getCost() {
  constexpr uint64_t mostMeant = 1 << 16;
  return bodyCost(getBody(), getMaxTrips() && *getMaxTrips() <= mostMeant ? double(*getMaxTrips()) : 1);
}

LogicalResult WhileOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  size_t carried = size_t(getNumCarried());
  SmallVector<HostTensor> arguments(operands.drop_front());
  bool goesOn = operands[0].data[0] != 0;
  for (uint64_t trip = 0; goesOn && (!getMaxTrips() || trip < *getMaxTrips()); ++trip) {
    auto returned = evaluateBody(getBody(), arguments, scalars);
    if (failed(returned))
      return failure();
    goesOn = (*returned)[0].data[0] != 0;
    std::move(returned->begin() + 1, returned->end(), arguments.begin());
  }
  std::move(arguments.begin(), arguments.begin() + ptrdiff_t(carried), results.begin());
  return success();
}

static BodyLayout layoutOf(WhileOp op) {
  BodyLayout layout;
  layout.bodies = {&op.getBody()};
  layout.firstOperand = 1;
  layout.firstReturned = 1;
  layout.numCarried = unsigned(op.getNumCarried());
  return layout;
}

ShardingRule WhileOp::getShardingRule() { return bodyShardingRule(*this, layoutOf(*this)); }
void WhileOp::localize(TypeRange) { localizeBodies(*this, layoutOf(*this)); }

} // namespace dg::ir
