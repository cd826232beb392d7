// SPDX-License-Identifier: Apache-2.0
// Graph algorithms of Boost.Graph on plain edge lists. GraphAlgorithms.cpp is the only file that includes Boost; which
// algorithms stay by hand, and why, is in docs/decisions/2026-11-18-boost-graph.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dg::partitioner {

/// From, to; nodes are numbered from 0. Parallel edges and loops are allowed.
using DirectedEdge = std::pair<uint32_t, uint32_t>;

/// The nodes on cycles, in ascending order: those that reach themselves. O(V + E).
std::vector<uint32_t> nodesOnCycles(uint32_t numNodes, std::span<const DirectedEdge> edges);

/// The edges on the longest way to each node; nothing where there is a cycle. O(V + E).
std::optional<std::vector<uint32_t>> longestWays(uint32_t numNodes, std::span<const DirectedEdge> edges);

} // namespace dg::partitioner
