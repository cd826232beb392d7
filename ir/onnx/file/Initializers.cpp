// SPDX-License-Identifier: Apache-2.0
#include "ir/onnx/file/Initializers.h"
#include "ir/dialect/ElementTypes.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringExtras.h"

#include <google/protobuf/unknown_field_set.h>

using namespace mlir;

namespace dg::ir::onnx_import {

static constexpr unsigned maxDepth = 64;
/// The optimizer of torch.onnx merges equal tensors of at most so many elements.
static constexpr int64_t maxMerged = 1024;
static constexpr StringLiteral declaration = "dg.initializer:";
/// The fields `metadata_props` of newer files, which the protobuf classes of libonnx-dev do not have.
static constexpr int nodeMetadata = 9, valueMetadata = 4, graphMetadata = 16;

template <typename Message> static llvm::StringMap<std::string> metadataOf(const Message &message, int field) {
  llvm::StringMap<std::string> entries;
  const google::protobuf::UnknownFieldSet &fields = message.unknown_fields();
  for (int index = 0; index < fields.field_count(); ++index) {
    const google::protobuf::UnknownField &each = fields.field(index);
    onnx::StringStringEntryProto entry;
    if (each.number() == field && each.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
        entry.ParseFromString(each.length_delimited()))
      entries[entry.key()] = entry.value();
  }
  return entries;
}

std::string metadataOf(const onnx::NodeProto &node, StringRef key) {
  return metadataOf(node, nodeMetadata).lookup(key);
}

/// The texts of a list as Python prints it: ['a', 'b'].
static std::vector<std::string> listOf(StringRef text) {
  std::vector<std::string> items;
  for (auto [rest, quote] = std::pair(text, text.find('\'')); quote != StringRef::npos; quote = rest.find('\'')) {
    rest = rest.drop_front(quote + 1);
    size_t end = rest.find('\'');
    if (end == StringRef::npos)
      break;
    items.push_back(rest.take_front(end).str());
    rest = rest.drop_front(end + 1);
  }
  return items;
}

/// The name that torch.export gives the placeholder of a parameter, without its prefix.
static std::string placeholderOf(StringRef name) {
  std::string text = name.lower();
  for (char &letter : text)
    if (!llvm::isAlnum(letter))
      letter = '_';
  return text;
}

/// The parameters of a graph signature by their placeholders, from lines such as "p_fc_weight: PARAMETER
/// target='fc.weight'".
static llvm::StringMap<std::string> parametersIn(StringRef signature) {
  llvm::StringMap<std::string> targets;
  for (StringRef line : llvm::split(signature, '\n')) {
    auto [placeholder, rest] = line.split(": PARAMETER target='");
    if (size_t end = rest.find('\''); end != StringRef::npos)
      targets[placeholder] = rest.take_front(end).str();
  }
  return targets;
}

/// The parameters, buffers and constants that the call of an fx node reads, in order: %p_…, %b_…, %c_….
static std::vector<std::string> placeholdersIn(StringRef call) {
  std::vector<std::string> names;
  for (size_t at = call.find("args = "); at != StringRef::npos && (at = call.find('%', at)) != StringRef::npos; ++at) {
    StringRef name = call.drop_front(at + 1).take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (name.size() > 2 && StringRef("pbc").contains(name[0]) && name[1] == '_')
      names.push_back(name.str());
  }
  return names;
}

bool isFilled(const TensorData &tensor) {
  size_t size = size_t(elementBytes(tensor.type.getElementType()));
  for (size_t at = size; at < tensor.bytes.size(); at += size)
    if (tensor.bytes.slice(at, size) != tensor.bytes.take_front(size))
      return false;
  return true;
}

TensorData transposed(const TensorData &tensor, std::string &bytes) {
  size_t rows = size_t(tensor.type.getDimSize(0)), columns = size_t(tensor.type.getDimSize(1));
  size_t size = size_t(elementBytes(tensor.type.getElementType()));
  bytes.resize(tensor.bytes.size());
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      std::copy_n(tensor.bytes.data() + (row * columns + column) * size, size,
                  bytes.data() + (column * rows + row) * size);
  return {RankedTensorType::get({int64_t(columns), int64_t(rows)}, tensor.type.getElementType()),
          {bytes.data(), bytes.size()}};
}

static bool isMatrix(const onnx::TensorProto &tensor) { return tensor.dims_size() == 2; }

/// At most maxMerged + 1, which stands for more: a file may name any number of dimensions of any size.
static int64_t numElements(const onnx::TensorProto &tensor) {
  constexpr int64_t most = maxMerged + 1;
  int64_t count = 1;
  for (int64_t size : tensor.dims())
    count = std::min(count * std::clamp<int64_t>(size, 0, most), most);
  return count;
}

/// A name that TorchScript's exporter gives to what it folded, as onnx::MatMul_237.
static bool isFoldedName(StringRef name) { return name.starts_with("onnx::"); }

//===- What the file says ----------------------------------------------------------------------------------------===//

Initializers::Initializers(const onnx::ModelProto &model, TensorReader &reader) : reader(reader) {
  const onnx::GraphProto &graph = model.graph();
  isTorch = model.producer_name() == "pytorch";
  for (const onnx::TensorProto &tensor : graph.initializer())
    byName[tensor.name()] = &tensor;
  for (const onnx::StringStringEntryProto &entry : model.metadata_props())
    if (StringRef key = entry.key(); key.consume_front(declaration))
      declared[key] = entry.value();
  targets = parametersIn(metadataOf(graph, graphMetadata).lookup("pkg.torch.export.ExportedProgram.graph_signature"));
  for (const auto &entry : targets)
    parameters.insert(entry.second);
  for (const onnx::ValueInfoProto &value : graph.value_info()) {
    llvm::StringMap<std::string> metadata = metadataOf(value, valueMetadata);
    if (metadata.empty())
      continue;
    Facts &known = facts[value.name()];
    known.kind = metadata.lookup("pkg.torch.export.graph_signature.InputSpec.kind");
    known.placeholder = metadata.lookup("pkg.torch.onnx.original_node_name");
    known.folded = listOf(metadata.lookup("pkg.onnxscript.optimizer.folded_from"));
    isExported = isExported || !known.kind.empty() || !known.folded.empty();
    if (known.folded.size() != 1)
      continue;
    known.placeholder = "p_" + placeholderOf(known.folded[0]);
    if (const onnx::TensorProto *tensor = byName.lookup(value.name()))
      foldedOf.try_emplace(known.folded[0], tensor);
  }
  collect(graph.node(), 0);
  for (const onnx::NodeProto &node : graph.node())
    for (const std::string &input : node.input())
      users[input].push_back(&node);
}

void Initializers::collect(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes, unsigned depth) {
  for (const onnx::NodeProto &node : nodes) {
    for (const std::string &input : node.input()) {
      facts[input].readers.insert(node.op_type());
      ++facts[input].numReaders;
    }
    for (const onnx::AttributeProto &attribute : node.attribute())
      if (attribute.has_g() && depth < maxDepth)
        collect(attribute.g().node(), depth + 1);
  }
}

const Initializers::Facts &Initializers::factsOf(StringRef name) const {
  static const Facts none;
  auto found = facts.find(name);
  return found == facts.end() ? none : found->second;
}

bool Initializers::isAlias(const onnx::NodeProto &node) const {
  return isTorch && !isExported && node.op_type() == "Identity" && node.input_size() == 1 && node.output_size() == 1 &&
         !isFoldedName(node.input(0)) && !StringRef(node.output(0)).starts_with("/");
}

//===- Readings --------------------------------------------------------------------------------------------------===//

Reading Initializers::readAs(const onnx::TensorProto &tensor, StringRef name) const {
  Reading reading;
  reading.name = name.str();
  reading.source = &tensor;
  if (declared.empty())
    return reading;
  auto found = declared.find(tensor.name());
  StringRef kind = found == declared.end() ? "constant" : StringRef(found->second);
  reading.kind = kind == "parameter" ? Reading::Kind::parameter
                 : kind == "frozen"  ? Reading::Kind::frozen
                                     : Reading::Kind::constant;
  return reading;
}

FailureOr<Reading> Initializers::read(Location location, const onnx::NodeProto &node, int index,
                                      const onnx::TensorProto &tensor) {
  if (!declared.empty() || !isTorch || byName.lookup(tensor.name()) != &tensor)
    return readAs(tensor, tensor.name());
  return isExported ? readExported(location, node, index, tensor) : readScripted(location, node, index, tensor);
}

FailureOr<const onnx::TensorProto *> Initializers::findTransposed(Location location, const onnx::TensorProto &tensor,
                                                                  StringRef name) {
  std::string bytes;
  std::optional<TensorData> turned;
  for (const auto &[other, candidate] : byName) {
    if (!isMatrix(*candidate) || isFoldedName(other) || (!name.empty() && other != name) || candidate == &tensor ||
        candidate->dims(0) != tensor.dims(1) || candidate->dims(1) != tensor.dims(0) ||
        candidate->data_type() != tensor.data_type())
      continue;
    FailureOr<TensorData> own = reader.read(location, tensor), data = reader.read(location, *candidate);
    if (failed(own) || failed(data))
      return failure();
    if (!turned)
      turned = transposed(*own, bytes);
    if (turned->bytes == data->bytes && !isFilled(*data))
      return candidate;
  }
  return nullptr;
}

/// Which placeholder of the fx node each input of the node is, empty where that cannot be said. An initializer that
/// appears under its own name is that; then names that end alike; what is left, if it is as many, in order.
std::vector<std::string> Initializers::assignPlaceholders(const onnx::NodeProto &node) const {
  llvm::StringMap<std::string> metadata = metadataOf(node, nodeMetadata);
  std::vector<std::string> free = placeholdersIn(metadata.lookup("pkg.torch.onnx.fx_node"));
  std::vector<std::string> assigned(size_t(node.input_size()));
  SmallVector<int> left;
  auto take = [&](int index, const std::string &name) {
    auto found = llvm::find(free, name);
    if (name.empty() || found == free.end())
      return false;
    assigned[size_t(index)] = name;
    free.erase(found);
    return true;
  };
  for (int index = 0; index < node.input_size(); ++index)
    if (const std::string &own = factsOf(node.input(index)).placeholder;
        byName.contains(node.input(index)) && !own.empty() && !take(index, own))
      left.push_back(index);
  std::vector<std::string> scopes = listOf(metadata.lookup("pkg.torch.onnx.name_scopes"));
  std::string module = scopes.size() > 1 ? scopes[scopes.size() - 2] : "";
  llvm::erase_if(left, [&](int index) {
    const Facts &known = factsOf(node.input(index));
    StringRef name = known.folded.size() == 1 ? StringRef(known.folded[0]) : StringRef(node.input(index));
    return take(index, "p_" + placeholderOf(module + "." + name.rsplit('.').second.str()));
  });
  if (left.size() == free.size())
    for (auto [index, name] : llvm::zip_equal(left, free))
      assigned[size_t(index)] = name;
  return assigned;
}

/// torch.export says what each value is and what each node called; its optimizer says what it folded.
FailureOr<Reading> Initializers::readExported(Location location, const onnx::NodeProto &node, int index,
                                              const onnx::TensorProto &tensor) {
  const Facts &known = factsOf(tensor.name());
  Reading reading = readAs(tensor, tensor.name());
  auto unclear = [&](const Twine &reason) {
    reading.kind = Reading::Kind::unclear;
    reading.reason = reason.str();
    return reading;
  };
  llvm::StringMap<std::string> metadata = metadataOf(node, nodeMetadata);
  bool isLinear = StringRef(metadata.lookup("pkg.torch.onnx.fx_node")).contains("aten.linear.default");
  if (known.kind.empty()) {
    bool isOfParameters = llvm::any_of(known.folded, [&](StringRef name) {
      return parameters.empty() ? name.contains('.') : parameters.contains(name);
    });
    if (!isOfParameters && (!known.folded.empty() || numElements(tensor) <= 1)) {
      reading.kind = Reading::Kind::constant;
      return reading;
    }
    if (known.folded.empty())
      return unclear("was computed by the exporter's optimizer, which folds batch norm into convolutions");
    if (known.folded.size() > 1 || !isLinear || node.op_type() != "MatMul" || index != 1 || !isMatrix(tensor))
      return unclear("was computed by the exporter's optimizer from " + llvm::join(known.folded, ", "));
    reading.name = known.folded[0];
    reading.isTransposed = reading.isStoredTransposed = true;
    reading.source = foldedOf.lookup(reading.name);
    if (reading.source != &tensor) {
      FailureOr<TensorData> first = reader.read(location, *reading.source), own = reader.read(location, tensor);
      if (failed(first) || failed(own))
        return failure();
      if (first->bytes != own->bytes)
        return unclear("was computed by the exporter's optimizer from " + reading.name + ", as '" +
                       reading.source->name() + "' was with other numbers");
    }
    if (byName.contains(reading.name)) {
      FailureOr<const onnx::TensorProto *> tied = findTransposed(location, tensor, reading.name);
      if (failed(tied))
        return failure();
      if (!*tied)
        return unclear("was computed by the exporter's optimizer from " + reading.name + ", whose transpose it is not");
      reading.source = *tied;
      reading.isStoredTransposed = false;
    }
  } else if (known.kind != "PARAMETER") {
    reading.kind = Reading::Kind::constant;
  }
  std::string placeholder = assignPlaceholders(node)[size_t(index)];
  if (placeholder == known.placeholder)
    return reading;
  if (placeholder.empty()) {
    if (known.numReaders > 1 && numElements(tensor) <= maxMerged && reading.source == &tensor)
      return unclear("is read by several nodes, and the file does not say whether they share it or the exporter "
                     "merged equal tensors");
    return reading;
  }
  reading.kind = placeholder[0] == 'p' ? Reading::Kind::parameter : Reading::Kind::constant;
  if (auto target = targets.find(placeholder); target != targets.end()) {
    reading.name = target->second;
    return reading;
  }
  // Merged with another: the module of the node and the end of the placeholder's name are its name.
  std::vector<std::string> scopes = listOf(metadata.lookup("pkg.torch.onnx.name_scopes"));
  std::string module = scopes.size() > 1 ? scopes[scopes.size() - 2] : "";
  StringRef end = StringRef(placeholder).drop_front(2);
  if (!module.empty() && !end.consume_front(placeholderOf(module) + "_"))
    return unclear("was merged with a tensor that the exported graph calls " + placeholder +
                   ", whose name cannot be told");
  reading.name = module.empty() ? end.str() : module + "." + end.str();
  return reading;
}

/// X.weight where the product's only reader adds X.bias: a linear layer.
std::string Initializers::nameByBias(const onnx::NodeProto &product) const {
  auto found = product.output_size() == 1 ? users.find(product.output(0)) : users.end();
  if (found == users.end() || found->second.size() != 1 || found->second[0]->op_type() != "Add")
    return "";
  for (StringRef input : found->second[0]->input())
    if (input.consume_back(".bias"))
      return (input + ".weight").str();
  return "";
}

/// TorchScript's exporter gives merged tensors their names by Identity nodes, and names of its own to what it folds.
FailureOr<Reading> Initializers::readScripted(Location location, const onnx::NodeProto &node, int index,
                                              const onnx::TensorProto &tensor) {
  const std::string &name = node.input(index);
  Reading reading = readAs(tensor, name);
  if (name != tensor.name()) {
    FailureOr<TensorData> data = reader.read(location, tensor);
    if (failed(data))
      return failure();
    if (isFilled(*data))
      return reading;
    // Equal numbers that nobody fills in: tied, or copies of one layer.
    reading.name = tensor.name();
    for (const std::string &op : factsOf(name).readers)
      if (factsOf(tensor.name()).readers.contains(op)) {
        reading.kind = Reading::Kind::unclear;
        reading.reason = "is one tensor for '" + tensor.name() + "' and '" + name +
                         "', and the file does not say whether they are tied or the exporter merged equal tensors";
      }
    return reading;
  }
  if (!isFoldedName(name))
    return reading;
  bool isWeight = factsOf(name).readers == std::set<std::string>{"MatMul"} && index == 1 && isMatrix(tensor);
  if (isWeight) {
    FailureOr<const onnx::TensorProto *> tied = findTransposed(location, tensor, "");
    if (failed(tied))
      return failure();
    std::string weight = nameByBias(node);
    if (*tied) {
      reading = readAs(**tied, (*tied)->name());
      reading.isTransposed = true;
    } else if (!weight.empty() && !byName.contains(weight) && factsOf(name).numReaders == 1) {
      reading.name = weight;
      reading.isTransposed = reading.isStoredTransposed = true;
    }
  } else if (numElements(tensor) <= 1) {
    reading.kind = Reading::Kind::constant;
  } else {
    reading.kind = Reading::Kind::unclear;
    reading.reason = "was computed by the exporter, which folds parameters with constants and batch norm into "
                     "convolutions";
  }
  return reading;
}

} // namespace dg::ir::onnx_import
