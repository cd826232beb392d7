// SPDX-License-Identifier: Apache-2.0
// Cutting a graph into pipeline stages: contiguous pieces of its topological order, the slowest as fast as possible.
#pragma once

#include "partitioner/model/CostModel.h"
#include "partitioner/model/Graph.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <vector>

namespace dg::partitioner {

/// The stage of every node. The nodes with a cost, in Graph::topologicalOrder, are cut into `numStages` non-empty
/// contiguous groups such that the largest stage time is least, and among such cuts the bytes that cross (for every cut
/// the values that live across it, each once) are fewest. A free node follows its first consumer, or, if it has none,
/// its last producer. So every edge goes forward: stage(from) <= stage(to). Exact and deterministic; O(E + n·p·log n)
/// time, O(n·p) memory. Fails with usage when numStages is 0 or more than the nodes with a cost, and passes on a cycle.
Result<std::vector<uint32_t>> balanceStages(const Graph &graph, uint32_t numStages, const CostModel &costs);

} // namespace dg::partitioner
