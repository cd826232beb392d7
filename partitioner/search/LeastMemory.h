// SPDX-License-Identifier: Apache-2.0
// The least memory that a configuration can do with: what decides whether a plan exists at all, and by how many bytes
// it does not.
#pragma once

#include "partitioner/search/ShardingSearch.h"
#include "partitioner/search/StageSearch.h"

#include <optional>

namespace dg::partitioner {

struct LeastMemory {
  std::vector<int32_t> choices;
  double peakBytes = 0; ///< of the largest stage, by StepModel's upper bound
};

/// Shardings whose bytes are least, and for them the stages whose largest is least. Exact where no op has to choose
/// between small parameters and small results; with few ops each choice is tried against the others too. Nothing
/// where pins leave no cut into stages.
std::optional<LeastMemory> findLeastMemory(const Model &model, const CostModel &costs, const ShardingSearch &shardings,
                                           const Configuration &configuration, Recompute recompute);

} // namespace dg::partitioner
