// SPDX-License-Identifier: Apache-2.0
// Reading a model.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace dg::tools {

/// Parses .mlir or .mlirbc. Null on failure, after a diagnostic on stderr.
mlir::OwningOpRef<mlir::ModuleOp> loadModel(const std::string &path, mlir::MLIRContext &context);

} // namespace dg::tools
