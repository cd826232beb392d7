// SPDX-License-Identifier: Apache-2.0
// The mesh as users write it.
#pragma once

#include "runtime/plan/Plan.h"

#include "llvm/ADT/StringRef.h"

namespace dg::passes {

/// Of an axis and of the whole mesh; three such axes can be multiplied in 64 bits.
inline constexpr int64_t maxRanks = 1 << 20;

/// Reads "data=2,tensor=1,pipe=2", as dgc --mesh takes it (axes left out have size 1). Fails with usage: unknown or
/// repeated axis, size below 1.
Result<plan::Mesh> parseMesh(llvm::StringRef text);

/// Fails with usage where an axis or the mesh has no rank or more than `maxRanks`.
Status checkMesh(const plan::Mesh &mesh);

} // namespace dg::passes
