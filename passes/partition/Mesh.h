// SPDX-License-Identifier: Apache-2.0
// The mesh as passes see it: read from the text of --mesh.
#pragma once

#include "runtime/plan/Plan.h"

#include "mlir/IR/Location.h"
#include "mlir/Support/LogicalResult.h"
#include "llvm/ADT/StringRef.h"

namespace dg::passes {

/// Reads "data=2,tensor=1,pipe=2" (axes left out have size 1). Fails with usage: unknown or repeated axis, size
/// below 1.
Result<plan::Mesh> parseMesh(llvm::StringRef text);

/// The same, with the error reported at `location`.
mlir::FailureOr<plan::Mesh> parseMesh(llvm::StringRef text, mlir::Location location);

} // namespace dg::passes
