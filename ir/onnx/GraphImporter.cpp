// SPDX-License-Identifier: Apache-2.0
#include "ir/onnx/GraphImporter.h"
#include "ir/dialect/Elements.h"
#include "ir/onnx/NodeTable.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/structure/LiteralOps.h"
#include "ir/reference/OpEvaluation.h"
#include "ir/rules/TypeDeduction.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

#include <set>

using namespace mlir;

namespace dg::ir::onnx_import {

/// A file of a few bytes may call functions that call functions.
static constexpr int64_t maxNodes = 1 << 20;
static constexpr unsigned maxDepth = 64;
/// What is evaluated while importing: shapes, masks, small tables.
static constexpr int64_t maxFoldedElements = 1 << 18;
static constexpr int64_t newestOpset = 21;

static std::string domainName(StringRef domain) { return domain.empty() ? "ai.onnx" : domain.str(); }

std::optional<DenseElementsAttr> constantOf(Value value) {
  if (auto literal = value.getDefiningOp<LiteralOp>())
    return cast<DenseElementsAttr>(literal.getValue());
  if (auto constant = value.getDefiningOp<ConstantOp>()) {
    auto type = cast<RankedTensorType>(constant.getType());
    HostTensor tensor{type.getShape().vec(), {}};
    tensor.data.assign(size_t(type.getNumElements()), constant.getValue().convertToDouble());
    return elementsOf(tensor, type);
  }
  return std::nullopt;
}

//===- Names -----------------------------------------------------------------------------------------------------===//

const onnx::TensorProto *GraphImporter::findInitializer(const Scope &scope, StringRef name) const {
  for (const Scope *at = &scope; at; at = at->parent) {
    if (at->values.contains(name))
      return nullptr;
    if (auto found = at->initializers.find(name); found != at->initializers.end())
      return found->second;
  }
  return nullptr;
}

static Location locationOf(OpBuilder &builder, const onnx::TensorProto &tensor) {
  return NameLoc::get(builder.getStringAttr("initializer '" + tensor.name() + "'"));
}

Value GraphImporter::lookup(const Scope &scope, StringRef name, const onnx::NodeProto *reader, int index) {
  for (const Scope *at = &scope; at; at = at->parent) {
    if (Value found = at->values.lookup(name))
      return found;
    auto found = at->initializers.find(name);
    if (found == at->initializers.end())
      continue;
    FailureOr<Reading> reading = read(*found->second, name, reader, index);
    return failed(reading) ? Value() : materialize(*reading);
  }
  return {};
}

FailureOr<Reading> GraphImporter::read(const onnx::TensorProto &tensor, StringRef name, const onnx::NodeProto *reader,
                                       int index) {
  return reader ? initializers->read(locationOf(builder, tensor), *reader, index, tensor)
                : initializers->readAs(tensor, name);
}

/// A parameter that starts from the file, at the start of the graph so that every subgraph sees it.
Value GraphImporter::parameter(Location location, const Reading &reading, TensorData data, bool isState) {
  if (reading.isStoredTransposed)
    data = transposed(data, transposes.emplace_back());
  std::string name = reading.name;
  for (unsigned number = 1; !parameterNames.insert(name).second; ++number) // a subgraph's own of the same name
    name = reading.name + "#" + std::to_string(number);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&graph.getBody().front());
  auto init = InitAttr::get(builder.getContext(), InitKind::file, builder.getF64FloatAttr(0));
  weights.push_back({name, data.type, data.bytes});
  auto flag = [&](bool isSet) { return isSet ? builder.getUnitAttr() : UnitAttr(); };
  return builder.create<ParameterOp>(location, data.type, builder.getStringAttr(name), TypeAttr::get(data.type), init,
                                     flag(isState), flag(reading.kind == Reading::Kind::frozen), PlaceAttr());
}

Value GraphImporter::lookupState(const Scope &scope, const onnx::NodeProto &reader, int index) {
  StringRef name = reader.input(index);
  const onnx::TensorProto *tensor = findInitializer(scope, name);
  if (!tensor)
    return lookup(scope, name, &reader, index);
  Location location = locationOf(builder, *tensor);
  FailureOr<TensorData> data = tensors.read(location, *tensor);
  if (failed(data))
    return {};
  if (!isa<FloatType>(data->type.getElementType()) || data->type.getRank() == 0)
    return lookup(scope, name, &reader, index);
  FailureOr<Reading> reading = read(*tensor, name, &reader, index);
  if (failed(reading))
    return {};
  if (options.isTraining && initializers->hasAuthorsNames() && parameterNames.contains(reading->name)) {
    emitError(location) << "holds running statistics that several nodes move, expected one: a module that is called "
                           "twice cannot be trained";
    return {};
  }
  return parameter(location, *reading, *data, /*isState=*/true);
}

/// A weight becomes a parameter where it is first read.
Value GraphImporter::materialize(const Reading &reading) {
  Value &known = made[{reading.source, reading.name}];
  Location location = locationOf(builder, *reading.source);
  OpBuilder::InsertionGuard guard(builder);
  Type element = elementTypeOf(builder.getContext(), reading.source->data_type());
  bool isFloats = isa_and_nonnull<FloatType>(element) && reading.source->dims_size() > 0;
  bool isFrozen = options.isFrozen && options.isFrozen(reading.name);
  if (isFloats && reading.kind == Reading::Kind::unclear && options.isTraining && !isFrozen) {
    emitError(location) << reading.reason << ": export the model with dg-from-torch, or give --freeze '" << reading.name
                        << "' if it is not to be trained";
    return {};
  }
  if (!known) {
    FailureOr<TensorData> data = tensors.read(location, *reading.source);
    if (failed(data))
      return {};
    if (!isFloats || reading.kind == Reading::Kind::constant) {
      if (isFloats)
        constants.push_back({reading.name, data->type, data->bytes});
      builder.setInsertionPointToStart(&graph.getBody().front());
      return known = literal(location, onnx_import::elementsOf(*data));
    }
    known = parameter(location, reading, *data, /*isState=*/false);
  }
  if (!reading.isTransposed)
    return known;
  Value &turned = transposedOf[known];
  builder.setInsertionPointAfterValue(known);
  if (!turned)
    turned = make(location, reading.name, "transpose", {known},
                  {builder.getNamedAttr("permutation", builder.getDenseI64ArrayAttr({1, 0}))}, 1)[0];
  return turned;
}

Value GraphImporter::literal(Location location, DenseElementsAttr elements) {
  return builder.create<LiteralOp>(location, elements.getType(), elements, PlaceAttr());
}

//===- Ops -------------------------------------------------------------------------------------------------------===//

bool GraphImporter::fold(Operation *op, SmallVectorImpl<Value> &results) {
  int64_t elements = 0;
  for (Type type : op->getResultTypes())
    elements += cast<RankedTensorType>(type).getNumElements();
  if (op->getNumOperands() == 0 || !isa<ReferenceOp>(op) || op->getNumRegions() > 0)
    return false;
  SmallVector<DenseElementsAttr> constants;
  for (Value operand : op->getOperands()) {
    std::optional<DenseElementsAttr> constant = constantOf(operand);
    if (!constant)
      return false;
    elements += constant->getNumElements();
    constants.push_back(*constant);
  }
  if (elements > maxFoldedElements)
    return false;
  // Without a way over doubles: 2^63-1, "as far as there is", must stay what it is.
  if (isa<ReshapeOp>(op)) {
    results[0] = literal(op->getLoc(), constants[0].reshape(tensorOf(op->getResult(0))));
    op->erase();
    return true;
  }
  SmallVector<HostTensor> operands;
  for (DenseElementsAttr constant : constants)
    operands.push_back(hostTensorOf(constant));
  FailureOr<SmallVector<HostTensor>> values = evaluateOp(op, operands, RunScalars(), Precision::f64);
  if (failed(values))
    return false;
  for (auto [index, value] : llvm::enumerate(*values))
    results[index] = literal(op->getLoc(), ir::elementsOf(value, tensorOf(op->getResult(unsigned(index)))));
  op->erase();
  return true;
}

SmallVector<Value> GraphImporter::make(Location location, StringRef label, StringRef opName, ValueRange operands,
                                       ArrayRef<NamedAttribute> attributes, unsigned numResults) {
  SmallVector<Value> nothing(numResults);
  if (llvm::is_contained(operands, Value()))
    return nothing;
  MLIRContext *context = builder.getContext();
  OperationState state(location, ("dg." + opName).str());
  if (!state.name.isRegistered()) {
    emitError(location) << "needs dg." << opName << ", which does not exist";
    return nothing;
  }
  state.addOperands(operands);
  state.addAttributes(attributes);
  state.addTypes(SmallVector<Type>(numResults, AnyType::get(context)));
  for (NamedAttribute attribute : attributes)
    if (!llvm::is_contained(state.name.getAttributeNames(), attribute.getName())) {
      emitError(location) << "needs an attribute '" << attribute.getName().getValue() << "' of dg." << opName
                          << ", which does not exist";
      return nothing;
    }
  if (failed(state.name.verifyInherentAttrs(state.attributes, [&] { return emitError(location); })))
    return nothing;
  if (!label.empty())
    state.addAttribute(placeName, PlaceAttr::get(context, StringAttr::get(context, label), -1, Phase::forward, -1, {}));
  Operation *op = builder.create(state);
  if (failed(deduceResults(op)) || failed(verify(op))) {
    op->erase();
    return nothing;
  }
  SmallVector<Value> results(op->getResults());
  fold(op, results);
  return results;
}

//===- Nodes -----------------------------------------------------------------------------------------------------===//

static Location locationOf(MLIRContext *context, const onnx::NodeProto &node, int64_t version) {
  std::string text = "node ";
  if (!node.name().empty())
    text += "'" + node.name() + "' ";
  else if (node.output_size() > 0)
    text += "that makes '" + node.output(0) + "' ";
  text += "(" + node.op_type() + ", " + domainName(node.domain()) + " version " + std::to_string(version) + ")";
  return NameLoc::get(StringAttr::get(context, text));
}

LogicalResult GraphImporter::importNode(const onnx::NodeProto &proto, Scope &scope) {
  StringRef domain = proto.domain() == "ai.onnx" ? "" : StringRef(proto.domain());
  int64_t version = scope.opsets->lookup(domain);
  Location location = locationOf(builder.getContext(), proto, version);
  if (++numNodes > maxNodes)
    return emitError(location) << "is beyond the " << maxNodes << " nodes that a model may have, functions inlined";
  if (auto function = functions.find({domain.str(), proto.op_type()}); function != functions.end())
    return importCall(proto, *function->second, scope, location);
  if (domain.empty() && initializers->isAlias(proto))
    if (const onnx::TensorProto *tensor = findInitializer(scope, proto.input(0))) {
      scope.initializers[proto.output(0)] = tensor;
      return success();
    }
  auto row = domain.empty() ? nodeTable().find(proto.op_type()) : nodeTable().end();
  if (row == nodeTable().end())
    return emitError(location) << "has an operator that is not supported";
  if (version < 1)
    return emitError(location) << "is of a domain that the model does not import";
  if (version > newestOpset)
    return emitError(location) << "is of a newer version than " << newestOpset << ", the newest that is known";
  Node node(*this, scope, proto, version, location);
  Results results = row->second(node);
  if (node.isRejected())
    return failure();
  for (unsigned index = 0; index < node.numOutputs(); ++index) {
    if (!node.hasOutput(index))
      continue;
    bool isMade = index < results.size() && results[index];
    if (!isMade && !isRead(proto.output(int(index))))
      continue;
    if (!isMade)
      return emitError(location) << "has an output '" << proto.output(int(index)) << "' (number " << index
                                 << ") that is not supported";
    if (!scope.values.try_emplace(proto.output(int(index)), results[index]).second)
      return emitError(location) << "makes '" << proto.output(int(index)) << "', which a node before it makes already";
  }
  return success();
}

LogicalResult GraphImporter::importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
                                         Scope &scope) {
  for (const onnx::NodeProto &node : nodes)
    if (failed(importNode(node, scope)))
      return failure();
  return success();
}

LogicalResult GraphImporter::importCall(const onnx::NodeProto &node, const onnx::FunctionProto &function, Scope &scope,
                                        Location location) {
  Scope inner;
  inner.depth = scope.depth + 1;
  inner.opsets = &functionOpsets[&function];
  if (inner.depth > maxDepth)
    return emitError(location) << "calls functions more than " << maxDepth << " deep";
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    const onnx::AttributeProto *value =
        attribute.ref_attr_name().empty() ? &attribute : scope.arguments.lookup(attribute.ref_attr_name());
    if (value)
      inner.arguments[attribute.name()] = value;
  }
  for (int index = 0; index < function.input_size() && index < node.input_size(); ++index) {
    if (node.input(index).empty())
      continue;
    Value value = lookup(scope, node.input(index), &node, index);
    if (!value && findInitializer(scope, node.input(index)))
      return failure();
    if (!value)
      return emitError(location) << "reads '" << node.input(index) << "', which no node before it makes";
    inner.values[function.input(index)] = value;
  }
  if (failed(importNodes(function.node(), inner)))
    return failure();
  for (int index = 0; index < function.output_size() && index < node.output_size(); ++index) {
    if (node.output(index).empty())
      continue;
    Value value = lookup(inner, function.output(index));
    if (!value)
      return emitError(location) << "calls a function that does not make its output '" << function.output(index) << "'";
    scope.values[node.output(index)] = value;
  }
  return success();
}

FailureOr<SmallVector<Value>> GraphImporter::importSubgraph(const Scope &outer, const onnx::GraphProto &subgraph,
                                                            ValueRange inputs, Location location) {
  Scope inner;
  inner.parent = &outer;
  inner.depth = outer.depth + 1;
  inner.opsets = outer.opsets;
  inner.arguments = outer.arguments;
  if (inner.depth > maxDepth)
    return emitError(location) << "has subgraphs more than " << maxDepth << " deep";
  if (inputs.size() != size_t(subgraph.input_size()))
    return emitError(location) << "has a subgraph with " << subgraph.input_size() << " inputs, expected "
                               << inputs.size();
  for (auto [index, value] : llvm::enumerate(inputs))
    inner.values[subgraph.input(int(index)).name()] = value;
  for (const onnx::TensorProto &tensor : subgraph.initializer())
    inner.initializers[tensor.name()] = &tensor;
  if (failed(importNodes(subgraph.node(), inner)))
    return failure();
  SmallVector<Value> results;
  for (const onnx::ValueInfoProto &output : subgraph.output()) {
    results.push_back(lookup(inner, output.name()));
    if (!results.back())
      return emitError(location) << "has a subgraph that does not make its output '" << output.name() << "'";
  }
  return results;
}

/// A body has no op around it yet.
static bool isInside(Region *region, Region *body) {
  while (region && region != body)
    region = region->getParentOp() ? region->getParentOp()->getParentRegion() : nullptr;
  return region == body;
}

SmallVector<Value> GraphImporter::closeBodies(ArrayRef<Region *> bodies) {
  llvm::SetVector<Value> outer;
  for (Region *body : bodies) {
    for (Operation &op : llvm::make_early_inc_range(body->front()))
      if (isa<LiteralOp>(op)) {
        op.remove();
        builder.insert(&op);
      }
    body->walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (!isInside(operand.getParentRegion(), body))
          outer.insert(operand);
    });
  }
  for (Region *body : bodies)
    for (Value value : outer) {
      Value argument = body->addArgument(value.getType(), value.getLoc());
      value.replaceUsesWithIf(argument,
                              [&](OpOperand &use) { return isInside(use.getOwner()->getParentRegion(), body); });
    }
  return outer.takeVector();
}

//===- The model -------------------------------------------------------------------------------------------------===//

FailureOr<RankedTensorType> GraphImporter::inputType(const onnx::ValueInfoProto &input) {
  auto refuse = [&] { return emitError(NameLoc::get(builder.getStringAttr("input '" + input.name() + "'"))); };
  if (!input.type().has_tensor_type())
    return refuse() << "is not a tensor, and sequences, maps and optional values are not supported";
  const auto &tensor = input.type().tensor_type();
  Type element = elementTypeOf(builder.getContext(), tensor.elem_type());
  if (!element)
    return refuse() << "has elements of type " << nameOfDataType(tensor.elem_type())
                    << ", expected numbers or booleans";
  if (!tensor.has_shape())
    return refuse() << "has no shape, expected one: export the model with the shapes of its inputs";
  SmallVector<int64_t> shape;
  for (const auto &dim : tensor.shape().dim()) {
    std::string place = input.name() + "." + std::to_string(shape.size());
    auto bound = options.bindings.find(dim.dim_param());
    if (bound == options.bindings.end() || dim.dim_param().empty())
      bound = options.bindings.find(place);
    if (dim.has_dim_value() && dim.dim_value() >= 0)
      shape.push_back(dim.dim_value());
    else if (bound != options.bindings.end())
      shape.push_back(bound->second);
    else if (shape.empty() && options.batch > 0)
      shape.push_back(options.batch);
    else
      return refuse() << "has dimension " << shape.size() << " of unknown size"
                      << (dim.dim_param().empty() ? "" : " '" + dim.dim_param() + "'") << ": give it with --bind "
                      << (dim.dim_param().empty() ? place : dim.dim_param()) << "=SIZE"
                      << (shape.empty() ? " (or --batch SIZE)" : "");
  }
  constexpr int64_t maxElements = int64_t(1) << 48; // shapes that are made from it can be counted
  int64_t elements = 1;
  for (int64_t size : shape)
    if (llvm::MulOverflow(elements, std::max<int64_t>(size, 1), elements) || elements > maxElements)
      return refuse() << "has more than 2^48 elements, expected fewer";
  return RankedTensorType::get(shape, element);
}

LogicalResult GraphImporter::addInputs(const onnx::GraphProto &proto, Scope &scope) {
  std::map<std::string, DenseElementsAttr> unused(options.constants);
  for (const onnx::ValueInfoProto &input : proto.input()) {
    if (scope.initializers.contains(input.name())) // a default value, as files before IR version 4 have it
      continue;
    if (auto constant = unused.find(input.name()); constant != unused.end()) {
      Location location = NameLoc::get(builder.getStringAttr("input '" + input.name() + "'"));
      Type element = elementTypeOf(builder.getContext(), input.type().tensor_type().elem_type());
      if (constant->second.getElementType() != element)
        return emitError(location) << "is given with --const as " << constant->second.getElementType()
                                   << ", expected elements of type "
                                   << nameOfDataType(input.type().tensor_type().elem_type());
      scope.values[input.name()] = literal(location, constant->second);
      unused.erase(constant);
      continue;
    }
    FailureOr<RankedTensorType> type = inputType(input);
    if (failed(type))
      return failure();
    scope.values[input.name()] = graph.addInput(input.name(), *type);
  }
  std::set<std::string> names; // of all dimensions
  for (const onnx::ValueInfoProto &input : proto.input())
    for (const auto &dim : input.type().tensor_type().shape().dim())
      names.insert(dim.dim_param());
  names.erase("");
  for (const auto &[name, size] : options.bindings)
    if (!names.contains(name) && name != "batch" && !StringRef(name).contains('.'))
      return emitError(graph.getLoc()) << "has no symbolic dimension '" << name << "', which --bind gives; it has "
                                       << (names.empty() ? "none" : llvm::join(names, ", "));
  if (!unused.empty())
    return emitError(graph.getLoc()) << "has no input '" << unused.begin()->first << "', which --const gives";
  return success();
}

/// What was made only to be folded, and initializers that were read as numbers.
void GraphImporter::eraseUnused() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(graph.getBody().front())))
    if (op.use_empty() && op.getNumResults() > 0 && isPure(&op))
      op.erase();
  llvm::StringSet<> kept;
  for (auto parameter : graph.getBody().front().getOps<ParameterOp>())
    kept.insert(parameter.getParam());
  llvm::erase_if(weights, [&](const OnnxWeight &weight) { return !kept.contains(weight.name); });
}

/// Outputs that nobody reads need not be made: masks, running statistics.
static void collectReads(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes, llvm::StringSet<> &names,
                         unsigned depth) {
  for (const onnx::NodeProto &node : nodes) {
    names.insert(node.input().begin(), node.input().end());
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g() && depth < maxDepth) {
        collectReads(attribute.g().node(), names, depth + 1);
        for (const onnx::ValueInfoProto &output : attribute.g().output())
          names.insert(output.name());
      }
  }
}

LogicalResult GraphImporter::run(ModuleOp module, const onnx::ModelProto &model) {
  Location location = module.getLoc();
  auto readOpsets = [](const auto &imports, llvm::StringMap<int64_t> &versions) {
    for (const onnx::OperatorSetIdProto &opset : imports)
      versions[opset.domain() == "ai.onnx" ? "" : opset.domain()] = opset.version();
  };
  readOpsets(model.opset_import(), opsets);
  opsets.try_emplace("", 1); // the first files named none
  for (const onnx::FunctionProto &function : model.functions()) {
    functions[{function.domain() == "ai.onnx" ? "" : function.domain(), function.name()}] = &function;
    readOpsets(function.opset_import(), functionOpsets[&function]);
  }
  initializers.emplace(model, tensors);
  builder.setInsertionPointToEnd(module.getBody());
  graph = builder.create<GraphOp>(location, builder.getStringAttr("forward"), builder.getArrayAttr({}),
                                  builder.getArrayAttr({}), StringAttr(), IntegerAttr(), PhaseAttr());
  builder.setInsertionPointToStart(&graph.getBody().emplaceBlock());
  Scope scope;
  scope.opsets = &opsets;
  const onnx::GraphProto &proto = model.graph();
  if (proto.sparse_initializer_size() > 0)
    return emitError(location) << "has sparse initializers, which are not supported";
  for (const onnx::TensorProto &tensor : proto.initializer())
    scope.initializers[tensor.name()] = &tensor;
  collectReads(proto.node(), readNames, 0);
  for (const onnx::ValueInfoProto &output : proto.output())
    readNames.insert(output.name());
  for (const onnx::FunctionProto &function : model.functions()) {
    collectReads(function.node(), readNames, 0);
    readNames.insert(function.output().begin(), function.output().end());
  }
  if (failed(addInputs(proto, scope)) || failed(importNodes(proto.node(), scope)))
    return failure();
  SmallVector<Value> results;
  SmallVector<Attribute> names;
  for (const onnx::ValueInfoProto &output : proto.output()) {
    Value value = lookup(scope, output.name());
    if (!value)
      return emitError(location) << "does not make its output '" << output.name() << "'";
    results.push_back(value);
    names.push_back(builder.getStringAttr(output.name()));
  }
  if (results.empty())
    return emitError(location) << "has no outputs, expected at least one";
  builder.create<ReturnOp>(location, results, builder.getArrayAttr(names), PlaceAttr());
  eraseUnused();
  return verify(graph);
}

} // namespace dg::ir::onnx_import
