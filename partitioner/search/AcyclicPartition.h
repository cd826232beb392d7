// SPDX-License-Identifier: Apache-2.0
// Plain model parallelism of any DAG: which subgraph stands on which device, few bytes between them, and no two that
// wait for each other. A multilevel partition: the graph is contracted, cut and refined while it is unfolded again.
#pragma once

#include "partitioner/model/WeightedDag.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <vector>

namespace dg::partitioner {

struct AcyclicOptions {
  uint32_t numParts = 2;
  double imbalance = 0.03; ///< a part may weigh so much more than the mean
  uint32_t numTries = 8;   ///< from different contractions; graphs of more than 20,000 nodes get two
  uint64_t seed = 1;
};

struct AcyclicPartition {
  std::vector<uint32_t> parts; ///< by node; part(from) <= part(to) on every edge, and none is empty
  uint64_t cut = 0;            ///< weight of the edges between parts
  uint64_t largestWeight = 0;  ///< of a part
};

/// Few edges by weight between `numParts` parts of about equal weight. Where the imbalance cannot be kept (a node is
/// too heavy), parts are as heavy as the best contiguous cut of the topological order needs. Deterministic. Fails with
/// usage where there are no or more parts than nodes and with badInput on a cycle.
Result<AcyclicPartition> partitionAcyclic(const WeightedDag &dag, const AcyclicOptions &options);

} // namespace dg::partitioner
