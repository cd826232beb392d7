// SPDX-License-Identifier: Apache-2.0
// The sharding of every op over the tensor axis, as one exact minimum over the whole model: the costs of the ops and of
// the collectives between them, segment by segment (equal segments once), then along the chain of segments.
#pragma once

#include "partitioner/model/OpCosts.h"

#include <cstdint>
#include <vector>

namespace dg::partitioner {

/// What is minimised: time of one micro-batch, and a price for memory by which the search trades time for bytes.
struct ShardingPrices {
  double forward = 1; ///< forward passes of an op in a step: 2 where it is computed again for the backward pass
  double usPerParameterElement = 0, usPerSavedByte = 0;
  double time = 1; ///< 0: memory alone counts
};

struct Shardings {
  std::vector<int32_t> choices; ///< per op: the factor that is cut, or uncut
  double objective = 0, lowerBound = 0;
};

/// Takes the model apart once; `solve` may be called by any thread.
class ShardingSearch {
public:
  explicit ShardingSearch(const Model &model);
  const std::vector<uint32_t> &bounds() const { return segmentBounds; }
  const std::vector<uint32_t> &kinds() const { return segmentKinds; }
  uint32_t numKinds() const { return kindCount; }

  /// Exact wherever the tables of a segment stay below the limit of `eliminate`; else lowerBound < objective.
  /// Deterministic.
  Shardings solve(const OpCosts &costs, const ShardingPrices &prices) const;

  /// For each segment, what no choice inside it and around it goes below.
  std::vector<double> boundSegments(const OpCosts &costs, const ShardingPrices &prices) const;

private:
  const Model &model;
  std::vector<uint32_t> segmentBounds, segmentKinds;
  std::vector<std::vector<uint32_t>> readersOf; ///< per value, each op once
  uint32_t kindCount = 0;
};

/// The same minimum summed up from its definition, for given choices: what `solve` minimises.
double shardingObjective(const OpCosts &costs, const ShardingPrices &prices, const std::vector<int32_t> &choices);

} // namespace dg::partitioner
