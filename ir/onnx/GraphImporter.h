// SPDX-License-Identifier: Apache-2.0
// From the nodes of an ONNX graph to dg ops in one block. Subgraphs and functions are imported by the same road, each
// with a scope of its own.
#pragma once

#include "ir/onnx/ImportOnnx.h"
#include "ir/onnx/file/Initializers.h"
#include "ir/ops/structure/GraphOps.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace dg::ir::onnx_import {

/// The names that a node can see.
struct Scope {
  const Scope *parent = nullptr; ///< of a subgraph: the graph around it
  llvm::StringMap<mlir::Value> values;
  llvm::StringMap<const onnx::TensorProto *> initializers;
  llvm::StringMap<const onnx::AttributeProto *> arguments; ///< of a function: the attributes of the call
  const llvm::StringMap<int64_t> *opsets = nullptr;        ///< domain → version
  unsigned depth = 0;                                      ///< of nested graphs and functions
};

class GraphImporter {
public:
  GraphImporter(mlir::MLIRContext *context, const OnnxOptions &options, std::string folder)
      : builder(context), tensors(std::move(folder)), options(options) {}

  /// Builds @forward in `module` from the model's graph. Called once.
  mlir::LogicalResult run(mlir::ModuleOp module, const onnx::ModelProto &model);

  /// Imports a subgraph at the builder's place with these values as its inputs; nothing, after a diagnostic, where it
  /// cannot.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> importSubgraph(const Scope &outer, const onnx::GraphProto &graph,
                                                                 mlir::ValueRange inputs, mlir::Location location);

  /// The value of a name, made from its initializer where it is one; null where nothing has the name, and after a
  /// diagnostic where the initializer cannot be read. `reader` and the number of its input decide which parameter an
  /// initializer is.
  mlir::Value lookup(const Scope &scope, llvm::StringRef name, const onnx::NodeProto *reader = nullptr, int index = 0);
  /// An input that a step moves and no gradient trains: an initializer becomes a parameter with `state` of its own,
  /// since exporters give equal tensors one name. Anything else is what `lookup` gives.
  mlir::Value lookupState(const Scope &scope, const onnx::NodeProto &reader, int index);
  /// Whether a node or the model itself reads a value of that name.
  bool isRead(llvm::StringRef name) const { return readNames.contains(name); }
  /// The initializer of that name, if nothing nearer has the name.
  const onnx::TensorProto *findInitializer(const Scope &scope, llvm::StringRef name) const;

  /// The results of dg.`op`, with inferred types; evaluated at once where all operands are constants. Null values,
  /// after a diagnostic, where the op does not fit; null without one where an operand is null.
  llvm::SmallVector<mlir::Value> make(mlir::Location location, llvm::StringRef label, llvm::StringRef op,
                                      mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes,
                                      unsigned numResults);
  mlir::Value literal(mlir::Location location, mlir::DenseElementsAttr elements);

  /// Makes the bodies of an op that is to be made at the builder's place whole in themselves: constants move in front
  /// of it, and what they read from outside becomes their last arguments. Returns those values.
  llvm::SmallVector<mlir::Value> closeBodies(llvm::ArrayRef<mlir::Region *> bodies);

  mlir::OpBuilder builder;
  TensorReader tensors;
  std::vector<OnnxWeight> weights, constants;
  const OnnxOptions &options;

private:
  mlir::LogicalResult addInputs(const onnx::GraphProto &graph, Scope &scope);
  mlir::FailureOr<mlir::RankedTensorType> inputType(const onnx::ValueInfoProto &input);
  mlir::LogicalResult importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes, Scope &scope);
  mlir::LogicalResult importNode(const onnx::NodeProto &node, Scope &scope);
  mlir::LogicalResult importCall(const onnx::NodeProto &node, const onnx::FunctionProto &function, Scope &scope,
                                 mlir::Location location);
  mlir::FailureOr<Reading> read(const onnx::TensorProto &tensor, llvm::StringRef name, const onnx::NodeProto *reader,
                                int index);
  mlir::Value materialize(const Reading &reading);
  mlir::Value parameter(mlir::Location location, const Reading &reading, TensorData data, bool isState);
  bool fold(mlir::Operation *op, llvm::SmallVectorImpl<mlir::Value> &results);
  void eraseUnused();

  GraphOp graph;
  llvm::StringMap<int64_t> opsets;
  std::map<std::pair<std::string, std::string>, const onnx::FunctionProto *> functions; ///< by domain and name
  std::map<const onnx::FunctionProto *, llvm::StringMap<int64_t>> functionOpsets;
  std::optional<Initializers> initializers;
  /// Initializers that became ops, by the parameter that a reader means.
  std::map<std::pair<const onnx::TensorProto *, std::string>, mlir::Value> made;
  llvm::DenseMap<mlir::Value, mlir::Value> transposedOf;
  std::deque<std::string> transposes; ///< bytes of parameters whose transpose the file holds
  llvm::StringSet<> parameterNames;
  llvm::StringSet<> readNames; ///< by any node of any graph, function or subgraph, or as an output
  int64_t numNodes = 0;
};

/// The constant that makes the value, if one does.
std::optional<mlir::DenseElementsAttr> constantOf(mlir::Value value);

} // namespace dg::ir::onnx_import
