// SPDX-License-Identifier: Apache-2.0
// Topological orders of a DAG, and the best cuts of one order into contiguous parts: where the multilevel acyclic
// partition begins.
#pragma once

#include "partitioner/model/WeightedDag.h"
#include "partitioner/search/AcyclicRefinement.h"

#include <optional>
#include <random>
#include <vector>

namespace dg::partitioner {

/// Which of the ready nodes comes next.
enum class OrderKind {
  depthFirst,  ///< the one that became ready last: branches one after the other
  fewestAlive, ///< the one whose results weigh least against what it consumes
  random,
};

/// A topological order; ties by chance. `dag` must be acyclic.
std::vector<uint32_t> drawOrder(const WeightedDag &dag, OrderKind kind, std::mt19937_64 &random);

/// The parts with the least cut of all contiguous, non-empty ones of this order within the limit; nothing where there
/// are none. Exact: O(n · w · (p + d)) for w nodes that fit into a part and d edges of a node.
std::optional<std::vector<uint32_t>> cutOrder(const WeightedDag &dag, const std::vector<uint32_t> &order,
                                              const PartLimits &limits);

/// The least that the heaviest of so many contiguous, non-empty parts of this order can weigh.
uint64_t leastLargestWeight(const WeightedDag &dag, const std::vector<uint32_t> &order, uint32_t numParts);

} // namespace dg::partitioner
