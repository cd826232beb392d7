// SPDX-License-Identifier: Apache-2.0
// A tensor of an ONNX file: its type and its bytes, whichever of the format's ways holds them.
#pragma once

#include "ir/onnx/file/ExternalFiles.h"
#include "ir/onnx/file/Proto.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <deque>

namespace dg::ir::onnx_import {

/// The MLIR type of a TensorProto.DataType; null for strings, complex numbers and what is newer than this table.
mlir::Type elementTypeOf(mlir::MLIRContext *context, int32_t dataType);
/// "FLOAT", "STRING", … for messages.
std::string nameOfDataType(int32_t dataType);

/// Row-major, little-endian; borrowed from the protobuf message, a mapped file or the reader.
struct TensorData {
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> bytes;
};

/// Reads tensors; owns the bytes of those that the file holds number by number. Must outlive what it reads.
class TensorReader {
public:
  explicit TensorReader(std::string folder) : external(std::move(folder)) {}

  /// Fails with a diagnostic at `location` where type, shape and bytes do not agree.
  mlir::FailureOr<TensorData> read(mlir::Location location, const onnx::TensorProto &tensor);

private:
  mlir::FailureOr<llvm::ArrayRef<char>> readExternal(mlir::Location location, const onnx::TensorProto &tensor);
  llvm::ArrayRef<char> keep(std::string bytes) {
    const std::string &own = kept.emplace_back(std::move(bytes));
    return {own.data(), own.size()};
  }
  ExternalFiles external;
  std::deque<std::string> kept;
};

/// The elements as an attribute.
mlir::DenseElementsAttr elementsOf(const TensorData &tensor);

} // namespace dg::ir::onnx_import
