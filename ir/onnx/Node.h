// SPDX-License-Identifier: Apache-2.0
// One ONNX node while it becomes dg ops: what the functions of the node table see of it. A function that cannot go on
// calls `reject` and returns null values; ops made from null values are null, so that a chain needs no checks.
#pragma once

#include "ir/onnx/GraphImporter.h"

namespace dg::ir::onnx_import {

using Results = llvm::SmallVector<mlir::Value>;

class Node {
public:
  Node(GraphImporter &importer, const Scope &scope, const onnx::NodeProto &proto, int64_t version,
       mlir::Location location);

  // What the file says.
  int64_t version() const { return theVersion; } ///< of the opset of the node's domain
  unsigned numInputs() const { return unsigned(proto.input_size()); }
  unsigned numOutputs() const { return unsigned(proto.output_size()); }
  bool hasInput(unsigned index) const;
  bool hasOutput(unsigned index) const;
  bool hasAttribute(llvm::StringRef name) const { return attribute(name); }

  int64_t integer(llvm::StringRef name, int64_t otherwise);
  double number(llvm::StringRef name, double otherwise);
  std::string text(llvm::StringRef name, llvm::StringRef otherwise);
  /// Empty where the node does not have it.
  llvm::SmallVector<int64_t> integers(llvm::StringRef name);
  llvm::SmallVector<double> numbers(llvm::StringRef name);
  llvm::SmallVector<std::string> texts(llvm::StringRef name);
  const onnx::AttributeProto *attribute(llvm::StringRef name) const;
  /// What its author, or a tool, noted under this key; "" where nothing.
  std::string metadata(llvm::StringRef key) const;

  // Inputs. Null, after a diagnostic, where the input is missing.
  mlir::Value input(unsigned index);
  /// An input that a training step moves and no gradient trains: see GraphImporter::lookupState.
  mlir::Value stateInput(unsigned index);
  /// All of them, from `first` on.
  Results inputs(unsigned first = 0);
  /// The input where it is there, null without a diagnostic else.
  mlir::Value optionalInput(unsigned index);
  /// The elements of an input that is constant; nothing where it is not.
  std::optional<mlir::DenseElementsAttr> constantInput(unsigned index);
  /// The same where the op needs it: rejects the node and says how to make the input a constant.
  std::optional<mlir::DenseElementsAttr> neededConstant(unsigned index, llvm::StringRef what);
  std::optional<llvm::SmallVector<int64_t>> neededIntegers(unsigned index, llvm::StringRef what);
  std::optional<int64_t> neededInteger(unsigned index, llvm::StringRef what);
  std::optional<llvm::SmallVector<double>> neededNumbers(unsigned index, llvm::StringRef what);
  std::optional<double> neededNumber(unsigned index, llvm::StringRef what);

  // Ops.
  mlir::Value op(llvm::StringRef name, mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes = {});
  Results ops(llvm::StringRef name, mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes,
              unsigned numResults);
  /// A constant of the element type, without dimensions.
  mlir::Value scalar(double value, mlir::Type elementType);
  /// The same in the element type of a value; null for null.
  mlir::Value scalarLike(double value, mlir::Value like);
  mlir::Value literal(mlir::DenseElementsAttr elements) { return importer.literal(location, elements); }
  /// A tensor of the file, as a constant; null, after a diagnostic, where it cannot be read.
  mlir::Value tensorLiteral(const onnx::TensorProto &tensor);
  mlir::Value integersLiteral(llvm::ArrayRef<int64_t> values);
  /// 0, 1, … in one dimension.
  mlir::Value counting(int64_t count, mlir::Type elementType);
  /// A tensor of one number.
  mlir::Value filled(double value, llvm::ArrayRef<int64_t> shape, mlir::Type elementType);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value cast(mlir::Value value, mlir::Type elementType);

  mlir::NamedAttribute attr(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute attr(llvm::StringRef name, double value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::StringRef value);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::ArrayRef<int64_t> values);
  mlir::NamedAttribute attr(llvm::StringRef name, llvm::ArrayRef<double> values);
  mlir::NamedAttribute attr(llvm::StringRef name, mlir::Type type);
  mlir::NamedAttribute flag(llvm::StringRef name);

  /// The dimension that an axis means, counted from the end where it is negative; rejects the node where there is none.
  std::optional<int64_t> dimension(int64_t axis, int64_t rank);
  std::optional<llvm::SmallVector<int64_t>> dimensions(llvm::ArrayRef<int64_t> axes, int64_t rank);

  /// An error at the node.
  mlir::InFlightDiagnostic reject();
  /// A subgraph attribute, imported here with these inputs.
  mlir::FailureOr<Results> subgraph(llvm::StringRef name, mlir::ValueRange inputs);
  /// The same at another place: in a body that `closeBodies` makes whole.
  mlir::FailureOr<Results> subgraphIn(mlir::Block &block, llvm::StringRef name, mlir::ValueRange inputs);
  llvm::SmallVector<mlir::Value> closeBodies(llvm::ArrayRef<mlir::Region *> bodies) {
    return importer.closeBodies(bodies);
  }
  /// Makes an op with these bodies, which it takes over; one value for each result, null after a diagnostic.
  Results control(llvm::StringRef name, mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attributes,
                  llvm::MutableArrayRef<mlir::Region> bodies, unsigned numResults);
  /// A dg.scan over `scanned`. `body` is called with the builder in the body, gets the carried values and a slice of
  /// each scanned one, and gives the next carried values, then what is stacked. Null values, after a diagnostic, where
  /// it cannot be made.
  Results scan(mlir::ValueRange carried, mlir::ValueRange scanned, bool isReverse, unsigned numStacked,
               llvm::function_ref<Results(mlir::ValueRange)> body);
  /// What `make` gives, without its diagnostics; nothing where it rejects the node or a value is null.
  std::optional<Results> attempt(llvm::function_ref<Results()> make);
  /// The rows of a micro-batch; 0 where they are not known.
  int64_t batch() const { return importer.options.batch; }

  mlir::MLIRContext *context() const { return location.getContext(); }
  mlir::OpBuilder &builder() { return importer.builder; }
  bool isRejected() const { return rejected; }
  bool isTraining() const { return importer.options.isTraining; }
  bool keepsTrainingMode() const { return importer.options.keepsTrainingMode; }
  mlir::Location loc() const { return location; }

private:
  const onnx::AttributeProto *attributeOf(llvm::StringRef name, onnx::AttributeProto::AttributeType type);
  GraphImporter &importer;
  const Scope &scope;
  const onnx::NodeProto &proto;
  int64_t theVersion;
  mlir::Location location;
  bool rejected = false;
};

/// The type of a value, null where the value is.
mlir::RankedTensorType typeOf(mlir::Value value);

} // namespace dg::ir::onnx_import
