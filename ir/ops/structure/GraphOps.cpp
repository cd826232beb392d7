// SPDX-License-Identifier: Apache-2.0
// Graphs, parameters and constants: text form, verification, and the parts of the op contract they have.
#include "ir/ops/structure/GraphOps.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/FusedBody.h"
#include "ir/ops/structure/ControlBodies.h"
#include "ir/ops/structure/LiteralOps.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace dg::ir {

//===- GraphOp ---------------------------------------------------------------------------------------------------===//

ReturnOp GraphOp::getReturn() { return cast<ReturnOp>(getBody().front().back()); }

StringRef GraphOp::getInputName(unsigned index) { return cast<StringAttr>(getInputNames()[index]).getValue(); }

BlockArgument GraphOp::addInput(StringRef name, Type type) {
  SmallVector<Attribute> names(getInputNames().getValue()), types(getInputTypes().getValue());
  names.push_back(StringAttr::get(getContext(), name));
  types.push_back(TypeAttr::get(type));
  setInputNamesAttr(ArrayAttr::get(getContext(), names));
  setInputTypesAttr(ArrayAttr::get(getContext(), types));
  return getBody().front().addArgument(type, getLoc());
}

void GraphOp::eraseInput(unsigned index) {
  SmallVector<Attribute> names(getInputNames().getValue()), types(getInputTypes().getValue());
  names.erase(names.begin() + index);
  types.erase(types.begin() + index);
  setInputNamesAttr(ArrayAttr::get(getContext(), names));
  setInputTypesAttr(ArrayAttr::get(getContext(), types));
  getBody().front().eraseArgument(index);
}

/// `@name(%x: type, …) [typed] attributes { … }`: arguments of a graph whose types are still to be deduced are
/// `!dg.any` inside it, so that no op of the text needs a type; `typed` after the arguments says that deduction has
/// happened.
ParseResult GraphOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, SymbolTable::getSymbolAttrName(), state.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren, /*allowType=*/true))
    return failure();
  bool isTyped = succeeded(parser.parseOptionalKeyword("typed"));
  SmallVector<Attribute> names, types;
  for (OpAsmParser::Argument &argument : arguments) {
    names.push_back(StringAttr::get(parser.getContext(), argument.ssaName.name.drop_front()));
    types.push_back(TypeAttr::get(argument.type));
    if (!isTyped)
      argument.type = AnyType::get(parser.getContext());
  }
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes))
    return failure();
  if (!state.attributes.get("input_names"))
    state.addAttribute("input_names", ArrayAttr::get(parser.getContext(), names));
  state.addAttribute("input_types", ArrayAttr::get(parser.getContext(), types));
  Region *body = state.addRegion();
  if (parser.parseRegion(*body, arguments, /*enableNameShadowing=*/true)) // its names are its own: isolated from above
    return failure();
  if (body->empty())
    body->emplaceBlock();
  return success();
}

void GraphOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << '(';
  Block &block = getBody().front();
  bool isTyped = llvm::none_of(block.getArgumentTypes(), isAny) &&
                 !llvm::any_of(block, [](Operation &op) { return llvm::any_of(op.getResultTypes(), isAny); });
  llvm::interleaveComma(block.getArguments(), printer, [&](BlockArgument argument) {
    printer << argument << ": " << cast<TypeAttr>(getInputTypes()[argument.getArgNumber()]).getValue();
  });
  printer << ')';
  if (isTyped)
    printer << " typed";
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {SymbolTable::getSymbolAttrName(), "input_types"});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult GraphOp::verify() {
  Block &block = getBody().front();
  if (getInputNames().size() != block.getNumArguments() || getInputTypes().size() != block.getNumArguments())
    return emitOpError() << "has " << block.getNumArguments() << " arguments but " << getInputNames().size()
                         << " names and " << getInputTypes().size() << " types";
  for (auto [type, argument] : llvm::zip(getInputTypes(), block.getArguments()))
    if (!isa<RankedTensorType>(cast<TypeAttr>(type).getValue()))
      return emitOpError() << "input " << argument.getArgNumber() << " ('" << getInputName(argument.getArgNumber())
                           << "') has type " << cast<TypeAttr>(type).getValue() << ", expected a ranked tensor";
  llvm::StringSet<> inputs, parameters, updated;
  for (auto name : getInputNames().getAsRange<StringAttr>())
    if (!inputs.insert(name.getValue()).second)
      return emitOpError() << "has two inputs named '" << name.getValue()
                           << "', expected different names: data is fed by them";
  for (auto parameter : block.getOps<ParameterOp>())
    if (!parameters.insert(parameter.getParam()).second)
      return parameter.emitOpError()
             << "'" << parameter.getParam()
             << "' is declared twice in this graph: use the value of the first declaration again";
  for (auto update : block.getOps<UpdateOp>())
    if (!updated.insert(update.getParam()).second)
      return update.emitOpError() << "is the second of '" << update.getParam()
                                  << "' in this graph, expected at most one: a step leaves one value";
  if (block.empty() || !isa<ReturnOp>(block.back()))
    return emitOpError("does not end with dg.return: every graph returns its results with it");
  return success();
}

//===- ReturnOp and UpdateOp -------------------------------------------------------------------------------------===//

std::string ReturnOp::getResultName(unsigned index) {
  if (ArrayAttr names = getNamesAttr())
    return cast<StringAttr>(names[index]).str();
  Operation *producer = getOperand(index).getDefiningOp();
  StringRef label = producer ? ::dg::ir::getPlace(producer).getLabel().getValue() : "";
  return label.empty() ? "result" + std::to_string(index) : label.str();
}

LogicalResult ReturnOp::verify() {
  if (getNames() && getNames()->size() != getNumOperands())
    return emitOpError() << "has " << getNumOperands() << " results but " << getNames()->size() << " names";
  if (getOperation() != &(*this)->getBlock()->back())
    return emitOpError("is not the last op of its graph: a graph returns once, at its end");
  return success();
}

LogicalResult UpdateOp::verify() {
  auto checkType = [&](ParameterOp parameter) -> LogicalResult {
    Type found = getOperand().getType(), expected = parameter.getResult().getType();
    if (found == expected || isAny(found) || isAny(expected))
      return success();
    return emitOpError() << "gives '" << getParam() << "' a value of type " << found << ", expected " << expected
                         << ", the type of its dg.parameter";
  };
  // The op that made the new value nearly always reads the old one; to search the whole graph for each update would
  // take the square of its parameters.
  if (Operation *producer = getOperand().getDefiningOp())
    for (Value operand : producer->getOperands())
      if (auto parameter = operand.getDefiningOp<ParameterOp>(); parameter && parameter.getParam() == getParam())
        return checkType(parameter);
  for (auto parameter : (*this)->getBlock()->getOps<ParameterOp>())
    if (parameter.getParam() == getParam())
      return checkType(parameter);
  return emitOpError() << "updates '" << getParam() << "', which no dg.parameter of this graph reads";
}

//===- ParameterOp -----------------------------------------------------------------------------------------------===//

ParseResult ParameterOp::parse(OpAsmParser &parser, OperationState &state) {
  StringAttr name;
  TypeAttr type;
  if (parser.parseAttribute(name, "param", state.attributes) || parser.parseAttribute(type, "type", state.attributes))
    return failure();
  SMLoc initLoc = parser.getCurrentLocation();
  StringRef kindName;
  double value = 0;
  if (parser.parseKeyword(&kindName))
    return failure();
  std::optional<InitKind> kind = symbolizeInitKind(kindName);
  if (!kind)
    return parser.emitError(initLoc) << "found '" << kindName
                                     << "', expected how the parameter starts: constant, uniform, normal or file";
  if (*kind != InitKind::file && parser.parseFloat(value))
    return failure();
  state.addAttribute("init", InitAttr::get(parser.getContext(), *kind, parser.getBuilder().getF64FloatAttr(value)));
  if (parser.parseOptionalAttrDict(state.attributes))
    return failure();
  Type deduced = AnyType::get(parser.getContext());
  if (succeeded(parser.parseOptionalColon()) && parser.parseType(deduced))
    return failure();
  state.addTypes(deduced);
  return success();
}

void ParameterOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getParamAttr() << ' ' << getType() << ' ' << stringifyInitKind(getInit().getKind());
  if (getInit().getKind() != InitKind::file) {
    printer << ' ';
    printer.printFloat(getInit().getValue().getValue());
  }
  printer.printOptionalAttrDict((*this)->getAttrs(), {"param", "type", "init"});
  if (!isAny(getResult().getType()))
    printer << " : " << getResult().getType();
}

LogicalResult ParameterOp::verify() {
  auto tensor = dyn_cast<RankedTensorType>(getType());
  if (!tensor || !tensor.hasStaticShape())
    return emitOpError() << "'" << getParam() << "' has type " << getType()
                         << ", expected a tensor whose dimensions are all numbers";
  // Once placed, the result is this rank's shard of the declared tensor.
  bool isPlaced = !::dg::ir::getPlace(*this).getShardings().empty();
  if (!isAny(getResult().getType()) && !isPlaced && getResult().getType() != getType())
    return emitOpError() << "'" << getParam() << "' is declared " << getType() << " but used as "
                         << getResult().getType();
  return success();
}

OpCost ParameterOp::getCost() { return {}; }

//===- ConstantOp ------------------------------------------------------------------------------------------------===//

LogicalResult ConstantOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError() << "has type " << getType() << ", expected a tensor whose dimensions are all numbers";
  return success();
}

Gradients ConstantOp::buildGradients(OpBuilder &, ValueRange) { return SmallVector<Value>(); }

ShardingRule ConstantOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto type = tensorOf(getResult());
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    rule.results[0][dim].push_back(rule.addFactor(type.getDimSize(dim)));
  return rule;
}

void ConstantOp::localize(TypeRange resultTypes) { setType(resultTypes[0]); }

OpCost ConstantOp::getCost() { return {}; }

void ConstantOp::compute(HostOperands, HostResults results) {
  std::fill(results[0].data.begin(), results[0].data.end(), getValue().convertToDouble());
}

//===- FusedOp ---------------------------------------------------------------------------------------------------===//

LogicalResult FusedOp::evaluate(HostOperands operands, HostResults results, const RunScalars &scalars) {
  auto returned = evaluateBody(getBody(), operands, scalars);
  if (failed(returned))
    return failure();
  std::move(returned->begin(), returned->end(), results.begin());
  return success();
}

//===- Results ---------------------------------------------------------------------------------------------------===//

bool isOfMicrobatch(GraphOp graph, Value result) {
  return graph.getSymName() == "infer" || tensorOf(result).getRank() > 0;
}

} // namespace dg::ir

#define DG_OPS "ir/ops/structure/GraphOps.cpp.inc"
#define DG_ADD_OPS addGraphOps
#include "ir/ops/Family.inc"
