// SPDX-License-Identifier: Apache-2.0
// Contracting pairs of a DAG so that it stays one: the coarsening of the multilevel acyclic partition.
#pragma once

#include "partitioner/model/WeightedDag.h"

#include <optional>
#include <random>
#include <vector>

namespace dg::partitioner {

/// One level: the contracted graph, and for each node of the finer one the node that it became a part of.
struct CoarseLevel {
  WeightedDag dag;
  std::vector<uint32_t> nodeOf;
};

/// Contracts pairs along heavy edges, at most `maxWeight` each and, where `parts` is given, within a part. Nothing
/// where no rule shrinks the graph by a twentieth. `dag` must be acyclic, and the result is. O(E) for each rule tried.
std::optional<CoarseLevel> coarsen(const WeightedDag &dag, const std::vector<uint32_t> *parts, uint64_t maxWeight,
                                   std::mt19937_64 &random);

} // namespace dg::partitioner
