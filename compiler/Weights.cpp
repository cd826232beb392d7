// SPDX-License-Identifier: Apache-2.0
#include "compiler/Weights.h"

#include "codegen/plan/DTypes.h"
#include "ir/dialect/Elements.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/plan/Elements.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace dg::compiler {

/// The type's name in safetensors.
static std::string dtypeOf(Type type) { return plan::safetensorsName(codegen::dtypeOf(type)); }

void Weights::add(const std::vector<ir::OnnxWeight> &weights) {
  for (const ir::OnnxWeight &weight : weights)
    tensors[weight.name] = {{weight.name, dtypeOf(weight.type.getElementType()), weight.type.getShape().vec()},
                            weight.bytes};
}

Status Weights::open(const std::string &wanted, const std::vector<std::string> &renames,
                     const std::vector<std::string> &skips) {
  path = wanted;
  if (llvm::sys::fs::is_directory(path))
    path += std::string("/") + checkpoint::tensorFileName;
  Result<package::MappedFile> mapped = package::MappedFile::open(path);
  if (!mapped)
    return mapped.status();
  file.emplace(std::move(*mapped));
  return parse(file->bytes(), renames, skips);
}

Status Weights::openOnnx(const std::string &wanted, const std::vector<ir::OnnxWeight> &weights,
                         const std::vector<std::string> &renames, const std::vector<std::string> &skips) {
  path = wanted;
  Weights own;
  own.add(weights);
  Result<std::string> bytes = own.pack({});
  if (!bytes)
    return bytes.status();
  if (bytes->empty())
    return Status::error(ErrorKind::badInput, "--weights {}: has no weights", path);
  packed = std::move(*bytes);
  return parse(std::as_bytes(std::span(packed)), renames, skips);
}

Status Weights::parse(std::span<const std::byte> bytes, const std::vector<std::string> &renames,
                      const std::vector<std::string> &skips) {
  Result<package::Safetensors> parsed = package::Safetensors::parse(bytes, path);
  if (!parsed)
    return parsed.status();
  given.emplace(std::move(*parsed));
  Result<NamedWeights> names = nameWeights(*given, path, renames, skips);
  if (!names)
    return names.status();
  named = std::move(*names);
  return Status::ok();
}

LogicalResult Weights::take(ir::ParameterOp parameter, const package::Tensor &tensor) {
  auto type = cast<RankedTensorType>(parameter.getType());
  std::optional<plan::DType> dtype = plan::safetensorsType(tensor.dtype);
  Type found = dtype ? codegen::typeOf(parameter.getContext(), *dtype) : Type(), element = type.getElementType();
  if (type.getShape() != ArrayRef(tensor.shape) || !found || isa<FloatType>(found) != isa<FloatType>(element) ||
      (found != element && !isa<FloatType>(found)))
    return parameter.emitOpError()
           << "'" << parameter.getParam() << "' is of type " << type << ", but " << path << " has it with shape ["
           << llvm::join(llvm::map_range(tensor.shape, [](int64_t n) { return std::to_string(n); }), ", ")
           << "] and type " << tensor.dtype << ": --weights-skip '" << parameter.getParam()
           << "' leaves it at its initial value";
  ArrayRef<char> bytes(reinterpret_cast<const char *>(tensor.data.data()), tensor.data.size());
  if (found != element) { // f16 or bf16 weights of an f32 model
    auto stored = ir::elementsOfBytes(bytes, RankedTensorType::get(type.getShape(), found));
    const std::string &own = converted.emplace_back(ir::bytesOf(ir::elementsOf(ir::hostTensorOf(stored), type)));
    bytes = {own.data(), own.size()};
  }
  std::string name = parameter.getParam().str();
  tensors[name] = {{name, dtypeOf(element), tensor.shape}, bytes};
  MLIRContext *context = parameter.getContext();
  parameter.setInitAttr(ir::InitAttr::get(context, ir::InitKind::file, FloatAttr::get(Float64Type::get(context), 0)));
  return success();
}

/// "3 skipped (a, b, c)"; "" for none.
static std::string describe(StringRef what, ArrayRef<std::string> names) {
  constexpr size_t most = 10;
  if (names.empty())
    return "";
  return fmt::format(", {} {} ({}{})", names.size(), what.str(), llvm::join(names.take_front(most), ", "),
                     names.size() > most ? ", …" : "");
}

LogicalResult Weights::bind(ir::GraphOp graph, Messages &messages) {
  llvm::SmallVector<std::string> renamed, skipped, missing, unused;
  llvm::StringSet<> taken;
  for (auto parameter : graph.getBody().front().getOps<ir::ParameterOp>()) {
    const std::string name = parameter.getParam().str();
    if (auto found = named.tensors.find(name); found != named.tensors.end()) {
      if (failed(take(parameter, *found->second)))
        return failure();
      if (taken.insert(name).second && found->second->name != name)
        renamed.push_back(fmt::format("{} as {}", found->second->name, name));
    } else if (given) {
      (named.skipped.contains(name) ? skipped : missing).push_back(name);
    }
    if (parameter.getInit().getKind() == ir::InitKind::file && !tensors.contains(name))
      return parameter.emitOpError() << "'" << name << "' starts from a file"
                                     << (named.skipped.contains(name) ? ", and --weights-skip leaves it out"
                                         : given                      ? ", which " + path + " does not have"
                                                                      : "")
                                     << ": give --weights FILE.safetensors with a tensor of that name";
  }
  if (!given)
    return success();
  size_t numStates = 0;
  for (const auto &[name, tensor] : named.tensors) {
    // A checkpoint has the state of an optimizer beside each parameter, as fc.weight.adam_m: only a training goes on
    // with it.
    const std::string owner = name.substr(0, name.rfind('.'));
    if (taken.contains(name))
      continue;
    if (owner != name && taken.contains(owner))
      ++numStates;
    else
      unused.push_back(name);
  }
  if (taken.empty())
    return graph.emitOpError() << "has no parameter that " << path << " has a tensor for: the model has "
                               << llvm::join(llvm::ArrayRef(missing).take_front(3), ", ")
                               << (missing.size() > 3 ? ", …" : "") << ", the file "
                               << llvm::join(llvm::ArrayRef(unused).take_front(3), ", ")
                               << (unused.size() > 3 ? ", …" : "") << ": --weights-rename 'OLD.*=NEW.*' maps names";
  messages.add(Message::Kind::note,
               fmt::format("{}: {} parameters loaded{}{}{}{}{}", path, taken.size(),
                           describe("of them renamed", renamed), describe("skipped", skipped),
                           describe("that it lacks left at their initial values", missing),
                           describe("of its tensors not used", unused),
                           numStates > 0 ? fmt::format(", {} of an optimizer not used", numStates) : ""));
  return success();
}

Result<std::string> Weights::pack(const std::vector<codegen::LiteralTensor> &literals) const {
  std::vector<package::TensorSpec> specs;
  std::vector<ArrayRef<char>> bytes;
  std::deque<std::string> own;
  for (const auto &[name, tensor] : tensors) {
    specs.push_back(tensor.spec);
    bytes.push_back(tensor.bytes);
  }
  for (const codegen::LiteralTensor &literal : literals) {
    auto type = cast<RankedTensorType>(literal.elements.getType());
    specs.push_back({literal.name, dtypeOf(type.getElementType()), type.getShape().vec()});
    own.push_back(ir::bytesOf(literal.elements));
    bytes.emplace_back(own.back().data(), own.back().size());
  }
  if (specs.empty())
    return std::string();
  Result<package::SafetensorsLayout> layout = package::layoutSafetensors(specs);
  if (!layout)
    return layout.status();
  std::string packed(layout->fileBytes, '\0');
  std::copy(layout->header.begin(), layout->header.end(), packed.begin());
  for (size_t i = 0; i < bytes.size(); ++i)
    std::copy(bytes[i].begin(), bytes[i].end(), packed.begin() + ptrdiff_t(layout->offsets[i]));
  return packed;
}

} // namespace dg::compiler
