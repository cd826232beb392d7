// SPDX-License-Identifier: Apache-2.0
#include "ir/onnx/Node.h"
#include "ir/dialect/Elements.h"
#include "ir/rules/TypeDeduction.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace dg::ir::onnx_import {

RankedTensorType typeOf(Value value) { return value ? tensorOf(value) : RankedTensorType(); }

Node::Node(GraphImporter &importer, const Scope &scope, const onnx::NodeProto &proto, int64_t version,
           Location location)
    : importer(importer), scope(scope), proto(proto), theVersion(version), location(location) {}

InFlightDiagnostic Node::reject() {
  rejected = true;
  return emitError(location);
}

bool Node::hasInput(unsigned index) const { return index < numInputs() && !proto.input(int(index)).empty(); }
bool Node::hasOutput(unsigned index) const { return index < numOutputs() && !proto.output(int(index)).empty(); }

//===- Attributes ------------------------------------------------------------------------------------------------===//

const onnx::AttributeProto *Node::attribute(StringRef name) const {
  for (const onnx::AttributeProto &attribute : proto.attribute()) {
    if (attribute.name() != name)
      continue;
    // Inside a function: the caller's attribute of another name.
    return attribute.ref_attr_name().empty() ? &attribute : scope.arguments.lookup(attribute.ref_attr_name());
  }
  return nullptr;
}

const onnx::AttributeProto *Node::attributeOf(StringRef name, onnx::AttributeProto::AttributeType type) {
  const onnx::AttributeProto *found = attribute(name);
  // The first files had no type field.
  if (!found || found->type() == type || found->type() == onnx::AttributeProto::UNDEFINED)
    return found;
  reject() << "attribute '" << name << "' is of type " << onnx::AttributeProto::AttributeType_Name(found->type())
           << ", expected " << onnx::AttributeProto::AttributeType_Name(type);
  return nullptr;
}

int64_t Node::integer(StringRef name, int64_t otherwise) {
  auto *found = attributeOf(name, onnx::AttributeProto::INT);
  return found ? found->i() : otherwise;
}

double Node::number(StringRef name, double otherwise) {
  auto *found = attributeOf(name, onnx::AttributeProto::FLOAT);
  return found ? double(found->f()) : otherwise;
}

std::string Node::text(StringRef name, StringRef otherwise) {
  auto *found = attributeOf(name, onnx::AttributeProto::STRING);
  return found ? found->s() : otherwise.str();
}

SmallVector<int64_t> Node::integers(StringRef name) {
  auto *found = attributeOf(name, onnx::AttributeProto::INTS);
  return found ? SmallVector<int64_t>(found->ints().begin(), found->ints().end()) : SmallVector<int64_t>();
}

SmallVector<double> Node::numbers(StringRef name) {
  auto *found = attributeOf(name, onnx::AttributeProto::FLOATS);
  return found ? SmallVector<double>(found->floats().begin(), found->floats().end()) : SmallVector<double>();
}

SmallVector<std::string> Node::texts(StringRef name) {
  auto *found = attributeOf(name, onnx::AttributeProto::STRINGS);
  return found ? SmallVector<std::string>(found->strings().begin(), found->strings().end())
               : SmallVector<std::string>();
}

std::string Node::metadata(StringRef key) const { return metadataOf(proto, key); }

//===- Inputs ----------------------------------------------------------------------------------------------------===//

Value Node::input(unsigned index) {
  if (!hasInput(index)) {
    reject() << "has no input " << index << ", which the operator needs";
    return {};
  }
  const std::string &name = proto.input(int(index));
  Value value = importer.lookup(scope, name, &proto, int(index));
  if (!value && importer.findInitializer(scope, name))
    rejected = true;
  else if (!value)
    reject() << "reads '" << name << "', which no node before it makes";
  return value;
}

Value Node::stateInput(unsigned index) {
  if (!hasInput(index) || !importer.findInitializer(scope, proto.input(int(index))))
    return input(index);
  Value value = importer.lookupState(scope, proto, int(index));
  rejected = rejected || !value;
  return value;
}

Results Node::inputs(unsigned first) {
  Results values;
  for (unsigned index = first; index < numInputs(); ++index)
    values.push_back(input(index));
  return values;
}

Value Node::optionalInput(unsigned index) { return hasInput(index) ? input(index) : Value(); }

std::optional<DenseElementsAttr> Node::constantInput(unsigned index) {
  if (!hasInput(index))
    return std::nullopt;
  // A weight that the node needs as a number never becomes a parameter.
  if (const onnx::TensorProto *tensor = importer.findInitializer(scope, proto.input(int(index)))) {
    FailureOr<TensorData> data = importer.tensors.read(location, *tensor);
    if (succeeded(data))
      return elementsOf(*data);
    rejected = true;
    return std::nullopt;
  }
  Value value = input(index);
  return value ? constantOf(value) : std::nullopt;
}

std::optional<DenseElementsAttr> Node::neededConstant(unsigned index, StringRef what) {
  if (std::optional<DenseElementsAttr> found = constantInput(index))
    return found;
  if (rejected)
    return std::nullopt;
  if (!hasInput(index)) {
    reject() << "has no input " << index << " (" << what << "), which the operator needs";
    return std::nullopt;
  }
  const std::string &name = proto.input(int(index));
  auto error = reject();
  error << "takes its " << what << " from '" << name
        << "', which is known only when the model runs, expected a constant";
  if (isa<BlockArgument>(input(index)))
    error << ": give it with --const " << name << "=@FILE.npy";
  return std::nullopt;
}

std::optional<SmallVector<double>> Node::neededNumbers(unsigned index, StringRef what) {
  std::optional<DenseElementsAttr> elements = neededConstant(index, what);
  if (!elements)
    return std::nullopt;
  HostTensor tensor = hostTensorOf(*elements);
  return SmallVector<double>(tensor.data.begin(), tensor.data.end());
}

std::optional<SmallVector<int64_t>> Node::neededIntegers(unsigned index, StringRef what) {
  std::optional<DenseElementsAttr> elements = neededConstant(index, what);
  if (!elements)
    return std::nullopt;
  if (!elements->getElementType().isInteger(64) && !elements->getElementType().isInteger(32)) {
    reject() << "has " << what << " of type " << elements->getElementType() << ", expected integers";
    return std::nullopt;
  }
  SmallVector<int64_t> values;
  for (const APInt &value : elements->getValues<APInt>())
    values.push_back(value.getSExtValue());
  return values;
}

std::optional<int64_t> Node::neededInteger(unsigned index, StringRef what) {
  std::optional<SmallVector<int64_t>> values = neededIntegers(index, what);
  if (values && values->size() == 1)
    return values->front();
  if (values)
    reject() << "has " << values->size() << " numbers as " << what << ", expected one";
  return std::nullopt;
}

std::optional<double> Node::neededNumber(unsigned index, StringRef what) {
  std::optional<SmallVector<double>> values = neededNumbers(index, what);
  if (values && values->size() == 1)
    return values->front();
  if (values)
    reject() << "has " << values->size() << " numbers as " << what << ", expected one";
  return std::nullopt;
}

//===- Ops -------------------------------------------------------------------------------------------------------===//

Results Node::ops(StringRef name, ValueRange operands, ArrayRef<NamedAttribute> attributes, unsigned numResults) {
  Results results = importer.make(location, proto.name().empty() && numOutputs() > 0 ? proto.output(0) : proto.name(),
                                  name, operands, attributes, numResults);
  if (llvm::is_contained(results, Value()))
    rejected = true;
  return results;
}

Value Node::op(StringRef name, ValueRange operands, ArrayRef<NamedAttribute> attributes) {
  return ops(name, operands, attributes, 1)[0];
}

Value Node::scalar(double value, Type elementType) {
  return literal(ir::elementsOf(HostTensor{{}, {value}}, RankedTensorType::get({}, elementType)));
}

Value Node::scalarLike(double value, Value like) {
  return like ? scalar(value, tensorOf(like).getElementType()) : Value();
}

Value Node::tensorLiteral(const onnx::TensorProto &tensor) {
  FailureOr<TensorData> data = importer.tensors.read(location, tensor);
  if (succeeded(data))
    return literal(elementsOf(*data));
  rejected = true;
  return {};
}

Value Node::integersLiteral(ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({int64_t(values.size())}, builder().getI64Type());
  return literal(DenseElementsAttr::get(type, values));
}

Value Node::counting(int64_t count, Type elementType) {
  return op("iota", {}, {attr("dim", int64_t(0)), attr("type", Type(RankedTensorType::get({count}, elementType)))});
}

Value Node::filled(double value, ArrayRef<int64_t> shape, Type elementType) {
  return op("expand", {scalar(value, elementType)}, {attr("shape", shape)});
}

Value Node::reshape(Value value, ArrayRef<int64_t> shape) {
  if (!value || tensorOf(value).getShape() == shape)
    return value;
  return op("reshape", {value}, {attr("shape", shape)});
}

Value Node::cast(Value value, Type elementType) {
  if (!value || tensorOf(value).getElementType() == elementType)
    return value;
  return op("cast", {value}, {attr("to", elementType)});
}

NamedAttribute Node::attr(StringRef name, int64_t value) {
  return builder().getNamedAttr(name, builder().getI64IntegerAttr(value));
}
NamedAttribute Node::attr(StringRef name, double value) {
  return builder().getNamedAttr(name, builder().getF64FloatAttr(value));
}
NamedAttribute Node::attr(StringRef name, StringRef value) {
  return builder().getNamedAttr(name, builder().getStringAttr(value));
}
NamedAttribute Node::attr(StringRef name, ArrayRef<int64_t> values) {
  return builder().getNamedAttr(name, builder().getDenseI64ArrayAttr(values));
}
NamedAttribute Node::attr(StringRef name, ArrayRef<double> values) {
  return builder().getNamedAttr(name, builder().getDenseF64ArrayAttr(values));
}
NamedAttribute Node::attr(StringRef name, Type type) { return builder().getNamedAttr(name, TypeAttr::get(type)); }
NamedAttribute Node::flag(StringRef name) { return builder().getNamedAttr(name, builder().getUnitAttr()); }

std::optional<int64_t> Node::dimension(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank)
    return axis < 0 ? axis + rank : axis;
  reject() << "has axis " << axis << ", expected one of " << rank << " dimensions (from " << -rank << " to " << rank - 1
           << ")";
  return std::nullopt;
}

std::optional<SmallVector<int64_t>> Node::dimensions(ArrayRef<int64_t> axes, int64_t rank) {
  SmallVector<int64_t> dims;
  for (int64_t axis : axes) {
    std::optional<int64_t> dim = dimension(axis, rank);
    if (!dim)
      return std::nullopt;
    if (llvm::is_contained(dims, *dim)) {
      reject() << "names dimension " << *dim << " twice";
      return std::nullopt;
    }
    dims.push_back(*dim);
  }
  return dims;
}

FailureOr<Results> Node::subgraph(StringRef name, ValueRange inputs) {
  const onnx::AttributeProto *found = attributeOf(name, onnx::AttributeProto::GRAPH);
  if (!found)
    return reject() << "has no subgraph '" << name << "'";
  FailureOr<Results> results = importer.importSubgraph(scope, found->g(), inputs, location);
  if (failed(results))
    rejected = true;
  return results;
}

FailureOr<Results> Node::subgraphIn(Block &block, StringRef name, ValueRange inputs) {
  OpBuilder::InsertionGuard guard(importer.builder);
  importer.builder.setInsertionPointToEnd(&block);
  return subgraph(name, inputs);
}

Results Node::control(StringRef name, ValueRange operands, ArrayRef<NamedAttribute> attributes,
                      MutableArrayRef<Region> bodies, unsigned numResults) {
  if (llvm::is_contained(operands, Value())) {
    rejected = true;
    return Results(numResults);
  }
  OperationState state(location, ("dg." + name).str());
  state.addOperands(operands);
  state.addAttributes(attributes);
  state.addTypes(SmallVector<Type>(numResults, AnyType::get(context())));
  for (Region &body : bodies)
    state.addRegion()->takeBody(body);
  Operation *op = importer.builder.create(state);
  if (succeeded(deduceResults(op)) && succeeded(verify(op)))
    return Results(op->getResults());
  rejected = true;
  op->erase();
  return Results(numResults);
}

Results Node::scan(ValueRange carried, ValueRange scanned, bool isReverse, unsigned numStacked,
                   llvm::function_ref<Results(ValueRange)> body) {
  Results nothing(carried.size() + numStacked);
  if (llvm::is_contained(carried, Value()) || llvm::is_contained(scanned, Value()))
    return nothing;
  Region region;
  Block &block = region.emplaceBlock();
  for (Value value : carried)
    block.addArgument(value.getType(), location);
  for (Value value : scanned)
    block.addArgument(RankedTensorType::get(tensorOf(value).getShape().drop_front(), tensorOf(value).getElementType()),
                      location);
  {
    OpBuilder::InsertionGuard guard(builder());
    builder().setInsertionPointToEnd(&block);
    Results returned = body(block.getArguments());
    if (rejected || returned.size() != nothing.size() || llvm::is_contained(returned, Value()))
      return nothing;
    builder().create<ReturnOp>(location, returned, ArrayAttr(), PlaceAttr());
  }
  SmallVector<Value> operands(carried);
  llvm::append_range(operands, scanned);
  llvm::append_range(operands, closeBodies(&region));
  SmallVector<NamedAttribute> attributes = {attr("num_carried", int64_t(carried.size())),
                                            attr("num_scanned", int64_t(scanned.size()))};
  if (isReverse)
    attributes.push_back(flag("reverse"));
  return control("scan", operands, attributes, region, unsigned(nothing.size()));
}

std::optional<Results> Node::attempt(llvm::function_ref<Results()> make) {
  ScopedDiagnosticHandler silent(context(), [](Diagnostic &) { return success(); });
  bool wasRejected = rejected;
  Results results = make();
  bool isGood = !rejected && !llvm::is_contained(results, Value());
  rejected = wasRejected;
  return isGood ? std::optional<Results>(std::move(results)) : std::nullopt;
}

} // namespace dg::ir::onnx_import
