// SPDX-License-Identifier: Apache-2.0
// Which bracketing each all-reduce of a plan gets: the one whose route is fastest on the cluster. It is decided here,
// once, because the bits of a run depend on it.
#pragma once

#include "partitioner/model/CostModel.h"

namespace dg::partitioner {

/// Writes the algorithm of every all-reduce of the plan, from its size and the nodes that its ranks are on.
void chooseBracketings(plan::Plan &plan, const CostModel &costs);

} // namespace dg::partitioner
