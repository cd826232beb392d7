// SPDX-License-Identifier: Apache-2.0
#include "ir/onnx/ImportOnnx.h"
#include "ir/onnx/GraphImporter.h"

#include "llvm/Support/Path.h"

using namespace mlir;

namespace dg::ir {

namespace {
/// What the bytes of weights are borrowed from.
struct Storage {
  onnx::ModelProto model;
  std::unique_ptr<onnx_import::GraphImporter> importer;
};
} // namespace

FailureOr<OnnxModel> importOnnx(StringRef bytes, const std::string &path, MLIRContext &context,
                                const OnnxOptions &options) {
  context.getOrLoadDialect<DGDialect>();
  Location location = NameLoc::get(StringAttr::get(&context, "the model"));
  auto storage = std::make_shared<Storage>();
  constexpr size_t maxBytes = INT32_MAX;
  if (bytes.size() > maxBytes)
    return emitError(location) << "has " << bytes.size() << " bytes, expected at most " << maxBytes
                               << ": export it with external data";
  if (!storage->model.ParseFromArray(bytes.data(), int(bytes.size())) || !storage->model.has_graph())
    return emitError(location) << "is not an ONNX model: export it again";
  storage->importer =
      std::make_unique<onnx_import::GraphImporter>(&context, options, llvm::sys::path::parent_path(path).str());
  OnnxModel result;
  result.module = ModuleOp::create(location);
  if (failed(storage->importer->run(*result.module, storage->model)))
    return failure();
  result.weights = std::move(storage->importer->weights);
  result.constants = std::move(storage->importer->constants);
  result.storage = storage;
  return result;
}

} // namespace dg::ir
