// SPDX-License-Identifier: Apache-2.0
#include "compiler/LoadModel.h"

#include "codegen/plan/DTypes.h"
#include "compiler/ReadBytecode.h"
#include "ir/build/Families.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/Elements.h"
#include "ir/dialect/TextGuard.h"
#include "runtime/data/format/TensorFiles.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

namespace dg::compiler {

Result<mlir::OwningOpRef<mlir::ModuleOp>> loadFamily(const std::string &spec, mlir::MLIRContext &context,
                                                     Messages &messages) {
  // A spec has no line and column.
  mlir::ScopedDiagnosticHandler handler(
      &context, [&](mlir::Diagnostic &message) { messages.add(Message::Kind::error, message.str()); });
  auto family = ir::buildFamily(spec, context);
  if (failed(family))
    return diagnosed(ErrorKind::usage);
  return std::move(*family);
}

Result<mlir::OwningOpRef<mlir::ModuleOp>> loadModel(const std::string &path, mlir::MLIRContext &context,
                                                    Messages &messages) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return messages.fail(fmt::format("{}: error: cannot be read ({}): give the path of a model (.mlir, .mlirbc or "
                                     ".onnx), or a built-in one: {}",
                                     path, buffer.getError().message(), ir::knownFamilies()));
  if (mlir::isBytecode(**buffer))
    return readBytecode(**buffer, context, messages);
  if (auto fault = ir::findTextFault((*buffer)->getBuffer()))
    return messages.fail(fmt::format("{}:{}:{}: error: {}", path, fault->line, fault->column, fault->message));
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(sources, &context);
  if (!module)
    return diagnosed();
  return std::move(module);
}

bool isOnnx(const std::string &path) { return llvm::StringRef(path).ends_with(".onnx"); }

Result<ir::OnnxModel> loadOnnx(const std::string &path, mlir::MLIRContext &context, ir::OnnxOptions options,
                               const std::map<std::string, std::string> &constants, Messages &messages) {
  for (const auto &[name, file] : constants) {
    Result<data::Tensor> tensor = data::openNpy(file);
    if (!tensor)
      return Status::error(ErrorKind::badInput, "--const {}: {}", name, tensor.status().message());
    auto type = mlir::RankedTensorType::get(tensor->shape, codegen::typeOf(&context, tensor->type));
    auto *bytes = reinterpret_cast<const char *>(tensor->data);
    size_t size = size_t(type.getNumElements() * ir::elementBytes(type.getElementType()));
    options.constants[name] = ir::elementsOfBytes({bytes, size}, type);
  }
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return messages.fail(fmt::format("{}: error: cannot be read ({})", path, buffer.getError().message()));
  mlir::FailureOr<ir::OnnxModel> imported = ir::importOnnx((*buffer)->getBuffer(), path, context, options);
  if (failed(imported))
    return diagnosed();
  return std::move(*imported);
}

} // namespace dg::compiler
