// SPDX-License-Identifier: Apache-2.0
// METIS as an outside judge of cuts. Its types stay in MetisOracle.cpp.
#pragma once

#include "partitioner/model/WeightedDag.h"

#include <cstdint>
#include <vector>

namespace dg::partitioner {

/// The same graph with weights that METIS's 32-bit numbers can hold and add up.
WeightedDag scaledForMetis(const WeightedDag &dag);

/// METIS's k-way partition of the undirected graph, the best of several seeds: the least of its cuts among the most
/// balanced ones. `imbalance` is its ufactor over 1000. It may exceed it.
std::vector<uint32_t> partitionByMetis(const WeightedDag &dag, uint32_t numParts, double imbalance);

/// METIS's parts made acyclic within `maxWeight`: they are put in the order of their mean depth, an order of the nodes
/// is drawn that follows them as far as edges allow, and it is cut as well as it can be; or nodes are pushed forward
/// (or backward) until no edge goes back, where that keeps the limit. The better of these; empty where none keeps the
/// limit.
std::vector<uint32_t> repairAcyclic(const WeightedDag &dag, const std::vector<uint32_t> &parts, uint32_t numParts,
                                    uint64_t maxWeight);

} // namespace dg::partitioner
