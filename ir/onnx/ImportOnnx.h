// SPDX-License-Identifier: Apache-2.0
// An ONNX model as a dg graph.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dg::ir {

struct OnnxOptions {
  std::map<std::string, int64_t> bindings; ///< symbolic dimension → size; "x.1" is a nameless dimension 1 of input x
  /// The size of the first dimension of inputs where it is symbolic and not bound; 0: it must be bound.
  int64_t batch = 0;
  std::map<std::string, mlir::DenseElementsAttr> constants; ///< inputs that are made constants
  /// The model will be trained: batch norm and dropout become ops that know both ways, however the file was exported.
  bool isTraining = false;
  /// Without training: batch norm and dropout compute as the file was exported, for training too; else as in inference.
  bool keepsTrainingMode = false;
  /// Whether a parameter of that name is not to be trained; null: none is. What cannot be trained must not be.
  std::function<bool(llvm::StringRef)> isFrozen;
};

/// A parameter's value in the file: the tensor that dg.parameter `name` of kind `file` starts with.
struct OnnxWeight {
  std::string name;
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> bytes; ///< row-major, little-endian; borrowed from OnnxModel::storage
};

struct OnnxModel {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< one graph, @forward, with all types deduced
  std::vector<OnnxWeight> weights;
  std::vector<OnnxWeight> constants;   ///< floating-point initializers with dimensions that are no parameters
  std::shared_ptr<const void> storage; ///< of the bytes of the weights
};

/// Imports the model in `bytes` (borrowed until it returns; the storage keeps what it needs). `path` is for messages,
/// and its folder the place of external data. Floating-point initializers with at least one dimension become
/// parameters unless the file says that they are none (Initializers.h), everything else constants; what depends on
/// constants alone is evaluated here, so that arithmetic on shapes disappears. Fails with a diagnostic that names the
/// node, its operator, domain and version.
mlir::FailureOr<OnnxModel> importOnnx(llvm::StringRef bytes, const std::string &path, mlir::MLIRContext &context,
                                      const OnnxOptions &options);

} // namespace dg::ir
