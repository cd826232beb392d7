// SPDX-License-Identifier: Apache-2.0
// Which results of a graph have a row for each sample.
#pragma once

#include "ir/ops/structure/GraphOps.h"

namespace dg::passes {

/// For each result of the graph whether row i belongs to sample i. Where an op has no rule to follow, a result with as
/// many rows as the inputs is taken for one.
llvm::SmallVector<bool> findSampleRows(ir::GraphOp graph);

} // namespace dg::passes
