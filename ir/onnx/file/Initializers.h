// SPDX-License-Identifier: Apache-2.0
// Which parameter a node reads when it reads an initializer. Exporters merge equal tensors, fold transposes and keep
// constants beside weights: what the file says of names, modules and its own folding decides what each use means.
#pragma once

#include "ir/onnx/file/TensorData.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <set>
#include <string>
#include <vector>

namespace dg::ir::onnx_import {

/// What a floating-point initializer with dimensions is to one of its readers.
struct Reading {
  enum class Kind {
    parameter, ///< trained by --train
    frozen,    ///< a parameter that its author does not train
    constant,  ///< no parameter
    unclear,   ///< cannot be trained: `reason` says why
  };
  Kind kind = Kind::parameter;
  std::string name;                          ///< of the parameter
  const onnx::TensorProto *source = nullptr; ///< the initializer that holds its value
  bool isTransposed = false;                 ///< the node reads the transpose of the parameter
  bool isStoredTransposed = false;           ///< `source` holds the transpose of the parameter
  std::string reason;                        ///< of `unclear`: what was found; the sentence begins with the name
};

/// The initializers of a model. The model must outlive it.
class Initializers {
public:
  Initializers(const onnx::ModelProto &model, TensorReader &reader);

  /// What input `index` of `node` reads; `tensor` is the initializer of that input's name. Fails with a diagnostic
  /// where the tensor cannot be read.
  mlir::FailureOr<Reading> read(mlir::Location location, const onnx::NodeProto &node, int index,
                                const onnx::TensorProto &tensor);
  /// The same for a name that no node reads, as an output of the model is.
  Reading readAs(const onnx::TensorProto &tensor, llvm::StringRef name) const;

  /// Whether the output of an Identity node is another name of its initializer, as PyTorch writes merged ones.
  bool isAlias(const onnx::NodeProto &node) const;
  /// Whether two readers of one name share one module: the file has a name for each parameter of the author's.
  bool hasAuthorsNames() const { return isTorch || !declared.empty(); }

private:
  /// What the file says of an initializer.
  struct Facts {
    std::string kind;                ///< PARAMETER, BUFFER, …; empty: not said
    std::string placeholder;         ///< its name in the exported graph, as p_layers_0_weight
    std::vector<std::string> folded; ///< the values that an optimizer computed it from
    std::set<std::string> readers;   ///< operators of the nodes that read it
    unsigned numReaders = 0;
  };
  void collect(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes, unsigned depth);
  mlir::FailureOr<Reading> readExported(mlir::Location location, const onnx::NodeProto &node, int index,
                                        const onnx::TensorProto &tensor);
  mlir::FailureOr<Reading> readScripted(mlir::Location location, const onnx::NodeProto &node, int index,
                                        const onnx::TensorProto &tensor);
  std::vector<std::string> assignPlaceholders(const onnx::NodeProto &node) const;
  const Facts &factsOf(llvm::StringRef name) const;
  /// The named initializer whose transpose `tensor` is; null where none is.
  mlir::FailureOr<const onnx::TensorProto *> findTransposed(mlir::Location location, const onnx::TensorProto &tensor,
                                                            llvm::StringRef name);
  std::string nameByBias(const onnx::NodeProto &product) const;

  TensorReader &reader;
  llvm::StringMap<Facts> facts;
  llvm::StringMap<const onnx::TensorProto *> byName;
  llvm::StringMap<const onnx::TensorProto *> foldedOf;         ///< the first that was computed from one value alone
  llvm::StringMap<std::string> targets;                        ///< of torch.export: parameters by their placeholders
  llvm::StringSet<> parameters;                                ///< the names in `targets`; empty: the file does not say
  llvm::StringMap<std::string> declared;                       ///< by dg-from-torch: parameter, frozen or buffer
  llvm::StringMap<std::vector<const onnx::NodeProto *>> users; ///< of a value, in the outer graph
  bool isTorch = false;                                        ///< PyTorch wrote it
  bool isExported = false;                                     ///< by torch.export, with what it knows of each value
};

/// What `metadata_props` of a node have under this key, or "".
std::string metadataOf(const onnx::NodeProto &node, llvm::StringRef key);
/// Whether all elements are the same: tensors that layers start with, which say nothing about who shares them.
bool isFilled(const TensorData &tensor);
/// A matrix with rows and columns exchanged; `bytes` must outlive it.
TensorData transposed(const TensorData &tensor, std::string &bytes);

} // namespace dg::ir::onnx_import
