// SPDX-License-Identifier: Apache-2.0
// The mesh as users write it.
#pragma once

#include "runtime/plan/Plan.h"

#include "llvm/ADT/StringRef.h"

namespace dg::passes {

/// Reads "data=2,tensor=1,pipe=2", as dgc --mesh takes it (axes left out have size 1). Fails with usage: unknown or
/// repeated axis, an axis or a mesh without a rank or
/// with more than ir::maxRanks.
Result<plan::Mesh> parseMesh(llvm::StringRef text);

} // namespace dg::passes
