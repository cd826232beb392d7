// SPDX-License-Identifier: Apache-2.0
// Reading a model. What fails does so with badInput after its diagnostics, unless said otherwise.
#pragma once

#include "compiler/Messages.h"
#include "ir/onnx/ImportOnnx.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace dg::compiler {

/// Builds the family that `spec` names. Fails with usage.
Result<mlir::OwningOpRef<mlir::ModuleOp>> loadFamily(const std::string &spec, mlir::MLIRContext &context,
                                                     Messages &messages);

/// Parses .mlir or .mlirbc; noise and brackets nested without end are refused before MLIR sees them.
Result<mlir::OwningOpRef<mlir::ModuleOp>> loadModel(const std::string &path, mlir::MLIRContext &context,
                                                    Messages &messages);

/// Whether a path names an ONNX model.
bool isOnnx(const std::string &path);

/// Imports an ONNX model; `constants` are inputs with the .npy file that gives them their value.
Result<ir::OnnxModel> loadOnnx(const std::string &path, mlir::MLIRContext &context, ir::OnnxOptions options,
                               const std::map<std::string, std::string> &constants, Messages &messages);

} // namespace dg::compiler
