// SPDX-License-Identifier: Apache-2.0
// Composite ops as their parts, for who asks what only parts can answer.
#pragma once

#include "mlir/IR/Operation.h"

namespace dg::passes {

/// Replaces all composites below `root`, parts that are composite too; see Decompose for `storesScores`.
void decomposeAll(mlir::Operation *root, bool storesScores);

} // namespace dg::passes
