// SPDX-License-Identifier: Apache-2.0
// Moving nodes between the parts of an acyclic partition so that fewer edges are cut, as Fiduccia and Mattheyses do,
// with only such moves as keep every edge going forward.
#pragma once

#include "partitioner/model/WeightedDag.h"

#include <random>
#include <vector>

namespace dg::partitioner {

/// What a partition has to keep.
struct PartLimits {
  uint32_t numParts = 2;
  uint64_t maxWeight = 0; ///< of a part
};

/// Improves `parts`, for which part(from) <= part(to) on every edge, and which has no empty part; both stay so. Parts
/// that are heavier than the limit become lighter first; the cut never grows unless that is needed for the limit.
void refine(const WeightedDag &dag, const PartLimits &limits, std::vector<uint32_t> &parts);

/// Numbers the parts anew, in a random order that the edges between them allow: then other moves are possible.
void renumber(const WeightedDag &dag, uint32_t numParts, std::vector<uint32_t> &parts, std::mt19937_64 &random);

} // namespace dg::partitioner
