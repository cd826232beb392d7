// SPDX-License-Identifier: Apache-2.0
// Reading a model.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace dg::tools {

/// Builds the family that `spec` names. Null on failure, after one line on stderr.
mlir::OwningOpRef<mlir::ModuleOp> loadFamily(const std::string &spec, mlir::MLIRContext &context);

/// Parses .mlir or .mlirbc; noise and brackets nested without end are refused before MLIR sees them. Null on failure,
/// after a diagnostic on stderr.
mlir::OwningOpRef<mlir::ModuleOp> loadModel(const std::string &path, mlir::MLIRContext &context);

} // namespace dg::tools
