// SPDX-License-Identifier: Apache-2.0
// The attributes that carry decisions, mesh, cut, sharding, place and precision: their text forms, and what of them is
// illegal. Apart from Dialect.cpp, which holds the text form of ops.
#include "ir/dialect/Dialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace dg::ir;

using EmitError = llvm::function_ref<InFlightDiagnostic()>;

//===- MeshAttr --------------------------------------------------------------------------------------------------===//

/// As the text form lists them.
static constexpr Axis meshAxes[] = {Axis::data, Axis::tensor, Axis::pipe};

int64_t MeshAttr::sizeOf(Axis axis) const {
  return axis == Axis::data ? getData() : axis == Axis::tensor ? getTensor() : getPipe();
}

LogicalResult MeshAttr::verify(EmitError emitError, int64_t data, int64_t tensor, int64_t pipe) {
  const int64_t sizes[] = {data, tensor, pipe};
  for (auto [axis, size] : llvm::zip_equal(meshAxes, sizes))
    if (size < 1 || size > maxRanks)
      return emitError() << "mesh has " << stringifyAxis(axis) << "=" << size << ", expected a size from 1 to "
                         << maxRanks;
  if (int64_t ranks = data * tensor * pipe; ranks > maxRanks)
    return emitError() << "mesh has " << ranks << " ranks, expected at most " << maxRanks;
  return success();
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  SMLoc start = parser.getCurrentLocation();
  int64_t sizes[std::size(meshAxes)] = {1, 1, 1};
  bool isGiven[std::size(meshAxes)] = {};
  auto parseAxis = [&]() -> ParseResult {
    SMLoc location = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    std::optional<Axis> axis = symbolizeAxis(name);
    if (!axis)
      return parser.emitError(location) << "mesh has an axis '" << name << "', expected data, tensor or pipe";
    const size_t index = size_t(llvm::find(meshAxes, *axis) - meshAxes);
    if (std::exchange(isGiven[index], true))
      return parser.emitError(location) << "mesh has the axis '" << name << "' twice, expected each axis at most once";
    return failure(parser.parseEqual() || parser.parseInteger(sizes[index]));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater, parseAxis))
    return {};
  return getChecked([&] { return parser.emitError(start); }, parser.getContext(), sizes[0], sizes[1], sizes[2]);
}

void MeshAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(meshAxes, printer, [&](Axis axis) { printer << stringifyAxis(axis) << " = " << sizeOf(axis); });
  printer << '>';
}

//===- CutAttr ---------------------------------------------------------------------------------------------------===//

LogicalResult CutAttr::verify(EmitError emitError, CutOf of, int64_t index, int64_t dim) {
  if (of == CutOf::whole && (index != 0 || dim != 0))
    return emitError() << "cut of nothing names dimension " << dim << " of " << index << ", expected 0 of 0";
  if (index < 0 || dim < 0)
    return emitError() << "cut names dimension " << dim << " of " << stringifyCutOf(of) << " " << index
                       << ", expected numbers from 0";
  return success();
}

Attribute CutAttr::parse(AsmParser &parser, Type) {
  SMLoc start = parser.getCurrentLocation(), location;
  StringRef name;
  int64_t index = 0, dim = 0;
  if (parser.parseLess() || parser.getCurrentLocation(&location) || parser.parseKeyword(&name))
    return {};
  std::optional<CutOf> of = symbolizeCutOf(name);
  if (!of) {
    parser.emitError(location) << "cut is of '" << name << "', expected whole, operand or result";
    return {};
  }
  if (*of != CutOf::whole &&
      (parser.parseInteger(index) || parser.parseComma() || parser.parseKeyword("dim") || parser.parseInteger(dim)))
    return {};
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(start); }, parser.getContext(), *of, index, dim);
}

void CutAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyCutOf(getOf());
  if (getOf() != CutOf::whole)
    printer << ' ' << getIndex() << ", dim " << getDim();
  printer << '>';
}

//===- ShardingAttr ----------------------------------------------------------------------------------------------===//

LogicalResult ShardingAttr::verify(EmitError emitError, ArrayRef<StringAttr> dims, ArrayRef<StringAttr> partial) {
  auto check = [&](StringAttr name) -> LogicalResult {
    std::optional<Axis> axis = symbolizeAxis(name.getValue());
    if (axis && *axis != Axis::pipe)
      return success();
    return emitError() << "sharding has the axis " << name << ", expected \"data\" or \"tensor\"";
  };
  for (StringAttr axis : dims)
    if (!axis.empty() && failed(check(axis)))
      return failure();
  for (StringAttr axis : partial)
    if (failed(check(axis)))
      return failure();
  return success();
}

static ParseResult parseAxes(AsmParser &parser, SmallVectorImpl<StringAttr> &axes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    std::string axis;
    if (parser.parseString(&axis))
      return failure();
    axes.push_back(StringAttr::get(parser.getContext(), axis));
    return success();
  });
}

Attribute ShardingAttr::parse(AsmParser &parser, Type) {
  SMLoc start = parser.getCurrentLocation();
  SmallVector<StringAttr> dims, partial;
  if (parser.parseLess() || parseAxes(parser, dims) || parser.parseComma() || parseAxes(parser, partial) ||
      parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(start); }, parser.getContext(), ArrayRef(dims), ArrayRef(partial));
}

void ShardingAttr::print(AsmPrinter &printer) const {
  auto printAxes = [&](ArrayRef<StringAttr> axes) {
    printer << '[';
    llvm::interleaveComma(axes, printer, [&](StringAttr axis) { printer.printString(axis.getValue()); });
    printer << ']';
  };
  printer << '<';
  printAxes(getDims());
  printer << ", ";
  printAxes(getPartial());
  printer << '>';
}

ShardingAttr dg::ir::wholeSharding(MLIRContext *context, int64_t rank) {
  return ShardingAttr::get(context, SmallVector<StringAttr>(rank, StringAttr::get(context, "")), {});
}

//===- PlaceAttr, PrecisionAttr ----------------------------------------------------------------------------------===//

LogicalResult PlaceAttr::verify(EmitError emitError, StringAttr, int64_t origin, Phase, int64_t stage,
                                ArrayRef<ShardingAttr>) {
  if (origin < -1)
    return emitError() << "place has origin " << origin << ", expected the number of an op, or -1 for none";
  if (stage < -1)
    return emitError() << "place has stage " << stage << ", expected the number of a stage, or -1 for none";
  return success();
}

LogicalResult PrecisionAttr::verify(EmitError emitError, StringAttr, StringAttr, Type type, StringAttr) {
  if (llvm::isa<FloatType>(type))
    return success();
  return emitError() << "precision of an op is " << type << ", expected a type of floats";
}

//===- On ops ----------------------------------------------------------------------------------------------------===//

template <typename Attr> static LogicalResult checkKind(Operation *op, NamedAttribute attribute, StringRef expected) {
  if (isa<Attr>(attribute.getValue()))
    return success();
  return op->emitOpError() << "has " << attribute.getName().getValue() << " = " << attribute.getValue() << ", expected "
                           << expected;
}

static LogicalResult checkOnModule(Operation *op, NamedAttribute attribute) {
  if (isa<ModuleOp>(op))
    return success();
  return op->emitOpError() << "has " << attribute.getName().getValue() << ", expected it on a module only";
}

/// The dimension exists, and the tensor axis divides it.
static LogicalResult checkCut(Operation *op, CutAttr cut) {
  if (cut.getOf() == CutOf::whole)
    return success();
  const bool isResult = cut.getOf() == CutOf::result;
  const StringRef of = stringifyCutOf(cut.getOf());
  const unsigned count = isResult ? op->getNumResults() : op->getNumOperands();
  if (cut.getIndex() >= count)
    return op->emitOpError() << "is to be cut along " << of << " " << cut.getIndex() << ", expected one of its "
                             << count << " " << of << "s";
  Value value = isResult ? Value(op->getResult(cut.getIndex())) : op->getOperand(cut.getIndex());
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return success(); // not deduced yet
  if (cut.getDim() >= type.getRank())
    return op->emitOpError() << "is to be cut along dimension " << cut.getDim() << " of " << of << " " << cut.getIndex()
                             << ", expected one of the " << type.getRank() << " of a " << type;
  auto module = op->getParentOfType<ModuleOp>();
  auto mesh = module ? module->getAttrOfType<MeshAttr>(meshName) : MeshAttr();
  if (mesh && type.getDimSize(cut.getDim()) % mesh.getTensor() != 0)
    return op->emitOpError() << "is to be cut along dimension " << cut.getDim() << " of " << of << " " << cut.getIndex()
                             << ", a " << type << ", over tensor=" << mesh.getTensor()
                             << ": expected a size that it divides";
  return success();
}

LogicalResult DGDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  const StringRef name = attribute.getName().getValue();
  if (name == meshName) {
    if (failed(checkOnModule(op, attribute)))
      return failure();
    return checkKind<MeshAttr>(op, attribute, "a mesh, as #dg.mesh<data = 2, tensor = 1, pipe = 1>");
  }
  if (name == precisionName) {
    if (failed(checkOnModule(op, attribute)) ||
        failed(checkKind<ArrayAttr>(op, attribute, "an array of #dg.precision")))
      return failure();
    for (Attribute each : cast<ArrayAttr>(attribute.getValue()))
      if (!isa<PrecisionAttr>(each))
        return op->emitOpError() << "has " << each << " in " << attribute.getName().getValue()
                                 << ", expected an array of #dg.precision";
    return success();
  }
  if (name == cutName) {
    if (failed(checkKind<CutAttr>(op, attribute, "a cut, as #dg.cut<result 0, dim 1> or #dg.cut<whole>")))
      return failure();
    return checkCut(op, cast<CutAttr>(attribute.getValue()));
  }
  if (name == recomputeName) {
    if (failed(checkKind<UnitAttr>(op, attribute, "no value")))
      return failure();
    if (getPlace(op).getPhase() != Phase::forward)
      return op->emitOpError() << "of the phase " << stringifyPhase(getPlace(op).getPhase()) << " has "
                               << attribute.getName().getValue() << ", expected it on forward ops only";
  }
  return success();
}
