// SPDX-License-Identifier: Apache-2.0
// How a graph inside another is cut over a mesh: by the rules of its ops, taken together.
#pragma once

#include "ir/ControlOps.h"

namespace dg::ir {

/// The factors of a scan: sets of dimensions, over all values of the body, of which each op of the body says that they
/// can be cut together. A sum may be partial along a factor; everything else that the body returns has it or does not
/// depend on it.
ShardingRule scanShardingRule(ScanOp op);

/// Gives the body the types of one shard, after the operands of the scan have theirs.
void localizeScanBody(ScanOp op);

} // namespace dg::ir
