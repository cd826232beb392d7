// SPDX-License-Identifier: Apache-2.0
// Reading a model.
#pragma once

#include "ir/onnx/ImportOnnx.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace dg::compiler {

/// Builds the family that `spec` names. Null on failure, after one line on stderr.
mlir::OwningOpRef<mlir::ModuleOp> loadFamily(const std::string &spec, mlir::MLIRContext &context);

/// Parses .mlir or .mlirbc; noise and brackets nested without end are refused before MLIR sees them. Null on failure,
/// after a diagnostic on stderr.
mlir::OwningOpRef<mlir::ModuleOp> loadModel(const std::string &path, mlir::MLIRContext &context);

/// Whether a path names an ONNX model.
bool isOnnx(const std::string &path);

/// Imports an ONNX model; `constants` are inputs with the .npy file that gives them their value. Fails after a message
/// on stderr or a diagnostic.
mlir::FailureOr<ir::OnnxModel> loadOnnx(const std::string &path, mlir::MLIRContext &context, ir::OnnxOptions options,
                                        const std::map<std::string, std::string> &constants);

} // namespace dg::compiler
