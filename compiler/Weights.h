// SPDX-License-Identifier: Apache-2.0
// What parameters start with that is not a recipe: the weights of an imported model, those of --weights, and the
// literals of the plan. They become init.safetensors of the package.
#pragma once

#include "codegen/plan/BuildPlan.h"
#include "compiler/Messages.h"
#include "compiler/WeightNames.h"
#include "ir/onnx/ImportOnnx.h"
#include "ir/ops/structure/GraphOps.h"
#include "runtime/package/MappedFile.h"
#include "runtime/package/Safetensors.h"

#include <deque>
#include <optional>
#include <span>

namespace dg::compiler {

class Weights {
public:
  /// The weights that came with the model; their storage must outlive this.
  void add(const std::vector<ir::OnnxWeight> &weights);
  /// A safetensors file, by --weights, whose tensors are named as WeightNames.h says.
  Status open(const std::string &path, const std::vector<std::string> &renames, const std::vector<std::string> &skips);
  /// The same, of the weights of an ONNX file, which were read from `path`.
  Status openOnnx(const std::string &path, const std::vector<ir::OnnxWeight> &weights,
                  const std::vector<std::string> &renames, const std::vector<std::string> &skips);

  /// Every parameter of the graph that --weights has a tensor for starts from it. Fails with a diagnostic where a shape
  /// differs, where a parameter that starts from a file has no tensor, and where the file has none of the parameters;
  /// notes what was loaded, renamed, skipped and left at its initial value.
  mlir::LogicalResult bind(ir::GraphOp graph, Messages &messages);

  /// The bytes of init.safetensors: the tensors that `bind` found and the literals. Empty where there are none.
  Result<std::string> pack(const std::vector<codegen::LiteralTensor> &literals) const;

private:
  Status parse(std::span<const std::byte> bytes, const std::vector<std::string> &renames,
               const std::vector<std::string> &skips);
  struct Tensor {
    package::TensorSpec spec;
    llvm::ArrayRef<char> bytes;
  };
  mlir::LogicalResult take(ir::ParameterOp parameter, const package::Tensor &tensor);
  std::map<std::string, Tensor> tensors; ///< by parameter
  std::deque<std::string> converted;     ///< bytes of tensors whose type was changed
  std::string path;                      ///< of --weights
  std::optional<package::MappedFile> file;
  std::string packed; ///< weights of an ONNX file as a safetensors file
  std::optional<package::Safetensors> given;
  NamedWeights named; ///< of `given`
};

} // namespace dg::compiler
