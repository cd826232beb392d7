// SPDX-License-Identifier: Apache-2.0
// The dialect, its attributes, and the text form that all ops share.
#include "ir/dialect/Dialect.h"
#include "ir/dialect/AttributeText.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dg::ir;

#include "ir/dialect/Dialect.cpp.inc"
#include "ir/dialect/DialectEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ir/dialect/DialectAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ir/dialect/DialectTypes.cpp.inc"

void DGDialect::initialize() {
  addGraphOps();
  addLiteralOps();
  addElementwiseOps();
  addMathOps();
  addLogicOps();
  addActivationOps();
  addReductionOps();
  addOrderOps();
  addEinsumOps();
  addContractionOps();
  addConvolutionOps();
  addBlockedOps();
  addShapeOps();
  addMovementOps();
  addArrangementOps();
  addNormalizationOps();
  addStatisticsOps();
  addPoolingOps();
  addIndexingOps();
  addGatherOps();
  addResampleOps();
  addAttentionOps();
  addControlOps();
  addRecurrentOps();
  addRandomOps();
  addLossOps();
  addOptimizerOps();
  addCommunicationOps();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/dialect/DialectAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/dialect/DialectTypes.cpp.inc"
      >();
}

//===- PlaceAttr -------------------------------------------------------------------------------------------------===//

PlaceAttr dg::ir::getPlace(Operation *op) {
  if (auto place = op->getAttrOfType<PlaceAttr>(placeName))
    return place;
  MLIRContext *context = op->getContext();
  return PlaceAttr::get(context, StringAttr::get(context, ""), -1, Phase::forward, -1, {});
}

void dg::ir::setPlace(Operation *op, PlaceAttr place) { op->setAttr(placeName, place); }

PlaceAttr dg::ir::withStage(PlaceAttr place, int64_t stage) {
  return PlaceAttr::get(place.getContext(), place.getLabel(), place.getOrigin(), place.getPhase(), stage,
                        place.getShardings());
}

PlaceAttr dg::ir::withOrigin(PlaceAttr place, int64_t origin, Phase phase) {
  return PlaceAttr::get(place.getContext(), place.getLabel(), origin, phase, place.getStage(), place.getShardings());
}

PlaceAttr dg::ir::withShardings(PlaceAttr place, ArrayRef<ShardingAttr> shardings) {
  return PlaceAttr::get(place.getContext(), place.getLabel(), place.getOrigin(), place.getPhase(), place.getStage(),
                        shardings);
}

PlaceAttr dg::ir::withLabel(PlaceAttr place, StringRef label) {
  return PlaceAttr::get(place.getContext(), StringAttr::get(place.getContext(), label), place.getOrigin(),
                        place.getPhase(), place.getStage(), place.getShardings());
}

//===- Text form -------------------------------------------------------------------------------------------------===//

/// "; did you mean X?" with the candidate that is fewest letters away, or that begins so, where one is near.
static std::string hintFor(StringRef found, ArrayRef<StringRef> candidates, StringRef prefix = "") {
  unsigned most = std::max<unsigned>(1, unsigned(found.size()) / 3), fewest = most + 1;
  StringRef nearest;
  for (StringRef candidate : candidates) {
    bool beginsSo = found.size() >= 3 && candidate.starts_with(found);
    unsigned distance = beginsSo ? 1 : found.edit_distance(candidate, true, most);
    // Of several the shortest: it is the plainest.
    if (distance < fewest || (distance == fewest && distance <= most && candidate.size() < nearest.size())) {
      fewest = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "" : ("; did you mean " + prefix + nearest + "?").str();
}

/// The parser has begun the message with "custom op 'dg.name' ".
static ParseResult rejectUnknownOp(OpAsmParser &parser, OperationState &state) {
  SmallVector<StringRef> names;
  for (RegisteredOperationName name : parser.getContext()->getRegisteredOperations())
    if (name.getDialectNamespace() == DGDialect::getDialectNamespace())
      names.push_back(name.stripDialect());
  return parser.emitError(parser.getNameLoc())
         << "is unknown" << hintFor(state.name.stripDialect(), names, "dg.") << " (dgc --list-ops prints all)";
}

std::optional<Dialect::ParseOpHook> DGDialect::getParseOperationHook(StringRef) const {
  return ParseOpHook(rejectUnknownOp);
}

/// Numbers as people write them, [1, 2] or [0.5, 2.0], as the arrays that ops hold; other attributes stay.
static Attribute asDenseArray(Attribute attribute) {
  auto list = dyn_cast<ArrayAttr>(attribute);
  if (!list || list.empty())
    return attribute;
  auto isWhole = [](Attribute each) {
    auto number = dyn_cast<IntegerAttr>(each);
    return number && number.getType().isInteger(64);
  };
  if (llvm::all_of(list, isWhole)) {
    auto numbers = llvm::map_to_vector(list, [](Attribute each) { return cast<IntegerAttr>(each).getInt(); });
    return DenseI64ArrayAttr::get(attribute.getContext(), numbers);
  }
  if (!llvm::all_of(list, [&](Attribute each) { return isWhole(each) || isa<FloatAttr>(each); }))
    return attribute;
  auto numbers = llvm::map_to_vector(list, [&](Attribute each) {
    return isWhole(each) ? double(cast<IntegerAttr>(each).getInt()) : cast<FloatAttr>(each).getValueAsDouble();
  });
  return DenseF64ArrayAttr::get(attribute.getContext(), numbers);
}

ParseResult dg::ir::checkAttributes(OpAsmParser &parser, OperationState &state, SMLoc location) {
  ArrayRef<StringAttr> known = state.name.getAttributeNames();
  for (NamedAttribute attribute : state.attributes) {
    if (llvm::is_contained(known, attribute.getName()) || attribute.getName().getValue().contains('.'))
      continue;
    auto error = parser.emitError(location) << "'" << state.name << "' has no attribute '"
                                            << attribute.getName().getValue() << "', expected one of: ";
    llvm::interleaveComma(known, error, [&](StringAttr name) { error << name.getValue(); });
    SmallVector<StringRef> names;
    for (StringAttr name : known)
      names.push_back(name.getValue());
    return error << hintFor(attribute.getName().getValue(), names);
  }
  SmallVector<NamedAttribute> written(state.attributes.getAttrs());
  for (NamedAttribute &attribute : written)
    attribute.setValue(asDenseArray(attribute.getValue()));
  state.attributes = written;
  return state.name.verifyInherentAttrs(state.attributes,
                                        [&] { return parser.emitError(location) << "'" << state.name << "' op "; });
}

ParseResult dg::ir::parseOp(OpAsmParser &parser, OperationState &state, unsigned numResults) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SMLoc start = parser.getCurrentLocation();
  if (parser.parseOperandList(operands) || parser.parseOptionalAttrDict(state.attributes) ||
      checkAttributes(parser, state, start))
    return failure();
  Type any = AnyType::get(parser.getContext());
  SmallVector<Type> operandTypes(operands.size(), any), resultTypes(numResults, any);
  if (succeeded(parser.parseOptionalColon())) {
    FunctionType types;
    if (parser.parseType(types))
      return failure();
    operandTypes.assign(types.getInputs().begin(), types.getInputs().end());
    resultTypes.assign(types.getResults().begin(), types.getResults().end());
  }
  if (parser.resolveOperands(operands, operandTypes, start, state.operands))
    return failure();
  state.addTypes(resultTypes);
  // The author's name of the result is worth keeping; numbers are the printer's.
  if (numResults > 0 && !state.attributes.get(placeName)) {
    StringRef label = parser.getResultName(0).first;
    if (!label.empty() && !llvm::isDigit(label.front())) {
      MLIRContext *context = parser.getContext();
      state.addAttribute(placeName,
                         PlaceAttr::get(context, StringAttr::get(context, label), -1, Phase::forward, -1, {}));
    }
  }
  return success();
}

void dg::ir::printOp(OpAsmPrinter &printer, Operation *op) {
  if (op->getNumOperands())
    printer << ' ';
  printer.printOperands(op->getOperands());
  printer.printOptionalAttrDict(op->getAttrs());
  bool isDeduced = llvm::none_of(op->getOperandTypes(), isAny) && llvm::none_of(op->getResultTypes(), isAny);
  if (isDeduced && (op->getNumOperands() || op->getNumResults())) {
    printer << " : ";
    printer.printFunctionalType(op->getOperandTypes(), op->getResultTypes());
  }
}
