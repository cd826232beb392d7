// SPDX-License-Identifier: Apache-2.0
// The built-in models that dgc takes by name in place of a file: "mlp:784-1024-10", "gpt:layers=48,hidden=8192,…".
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace dg::ir {

/// True where `model` names a family (what stands before the ':', or all of it) and not a file.
bool isFamilySpec(llvm::StringRef model);

/// The model of a spec, as its text would parse: a `@loss` graph of untyped values with a symbolic batch, and its
/// optimizer. Parameters are recipes, so that size costs nothing. Fails after one diagnostic that says what is known.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> buildFamily(llvm::StringRef spec, mlir::MLIRContext &context);

/// One spec of each family, for messages: "mlp:784-1024-10, lenet, …".
std::string knownFamilies();

} // namespace dg::ir
