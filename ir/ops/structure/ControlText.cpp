// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/structure/ControlText.h"
#include "ir/dialect/AttributeText.h"
#include "ir/dialect/Dialect.h"

using namespace mlir;

namespace dg::ir {

namespace {
/// What stands before the bodies.
struct Header {
  SMLoc start;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> operandTypes;
};
} // namespace

/// The type under which a body sees an operand.
static Type typeInside(Type type, bool isSliced) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!isSliced || !tensor || tensor.getRank() == 0)
    return type;
  return RankedTensorType::get(tensor.getShape().drop_front(), tensor.getElementType());
}

static FailureOr<Header> parseHeader(OpAsmParser &parser, OperationState &state, const ControlForm &form) {
  Header header;
  header.start = parser.getCurrentLocation();
  if (form.hasCondition && parser.parseOperand(header.operands.emplace_back()))
    return failure();
  SmallVector<bool> isSliced;
  SmallVector<int64_t> counts;
  for (const OperandGroup &group : form.groups) {
    if (succeeded(parser.parseOptionalKeyword(group.keyword)) &&
        parser.parseAssignmentList(header.arguments, header.operands))
      return failure();
    counts.push_back(int64_t(header.arguments.size() - isSliced.size()));
    isSliced.resize(header.arguments.size(), group.isSliced);
  }
  if (parser.parseOptionalAttrDictWithKeyword(state.attributes) || checkAttributes(parser, state, header.start))
    return failure();
  for (auto [group, count] : llvm::zip_equal(form.groups, counts))
    if (!group.countName.empty())
      state.attributes.set(group.countName, parser.getBuilder().getI64IntegerAttr(count));
  Type any = AnyType::get(parser.getContext());
  header.operandTypes.assign(header.operands.size(), any);
  SmallVector<Type> resultTypes(parser.getNumResults(), any);
  if (succeeded(parser.parseOptionalColon())) {
    FunctionType types;
    if (parser.parseType(types))
      return failure();
    header.operandTypes.assign(types.getInputs().begin(), types.getInputs().end());
    resultTypes.assign(types.getResults().begin(), types.getResults().end());
  }
  if (header.operandTypes.size() != header.operands.size())
    return parser.emitError(header.start)
           << header.operands.size() << " operands present, but expected " << header.operandTypes.size();
  state.addTypes(resultTypes);
  ArrayRef<Type> given = ArrayRef(header.operandTypes).take_back(header.arguments.size());
  for (auto [argument, type, sliced] : llvm::zip_equal(header.arguments, given, isSliced))
    argument.type = typeInside(type, sliced);
  return header;
}

ParseResult parseControl(OpAsmParser &parser, OperationState &state, const ControlForm &form) {
  FailureOr<Header> header = parseHeader(parser, state, form);
  if (failed(header))
    return failure();
  for (unsigned index = 0; index < form.numBodies; ++index) {
    if (index > 0 && parser.parseKeyword("else"))
      return failure();
    Region *body = state.addRegion();
    // Its names are its own: isolated from above.
    if (parser.parseRegion(*body, header->arguments, /*enableNameShadowing=*/true))
      return failure();
    if (body->empty())
      body->emplaceBlock();
  }
  // Behind the bodies: where one defines a name that stood for an operand before, the parser replaces the operand.
  return parser.resolveOperands(header->operands, header->operandTypes, header->start, state.operands);
}

void printControl(OpAsmPrinter &printer, Operation *op, const ControlForm &form) {
  unsigned first = form.hasCondition ? 1 : 0, next = first;
  if (form.hasCondition)
    printer << ' ' << op->getOperand(0);
  SmallVector<StringRef> counted;
  for (const OperandGroup &group : form.groups) {
    unsigned end = op->getNumOperands();
    if (!group.countName.empty()) {
      counted.push_back(group.countName);
      end = next + unsigned(op->getAttrOfType<IntegerAttr>(group.countName).getInt());
    }
    if (next == end)
      continue;
    printer << ' ' << group.keyword << '(';
    for (unsigned index = next; index < end; ++index)
      printer << (index > next ? ", " : "") << op->getRegion(0).getArgument(index - first) << " = "
              << op->getOperand(index);
    printer << ')';
    next = end;
  }
  printer.printOptionalAttrDictWithKeyword(op->getAttrs(), counted);
  if (llvm::none_of(op->getOperandTypes(), isAny) && llvm::none_of(op->getResultTypes(), isAny)) {
    printer << " : ";
    printer.printFunctionalType(op->getOperandTypes(), op->getResultTypes());
  }
  for (auto [index, body] : llvm::enumerate(op->getRegions())) {
    printer << (index > 0 ? " else " : " ");
    // All bodies call what they see by the same names.
    if (index > 0)
      printer.shadowRegionArgs(body, op->getRegion(0).getArguments());
    printer.printRegion(body, /*printEntryBlockArgs=*/false);
  }
}

} // namespace dg::ir
