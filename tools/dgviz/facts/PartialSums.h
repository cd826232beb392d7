// SPDX-License-Identifier: Apache-2.0
// Which tensors are not yet what their name says: each rank along a mesh axis holds a summand, until a collective adds
// them up. A plan has only local shapes; what is partial follows from the collectives.
#pragma once

#include "runtime/plan/Plan.h"

#include <vector>

namespace dg::viz {

/// A value as an op finds it (what it reads) or leaves it (what it only writes).
struct PartialSum {
  plan::TaskId task = 0;
  plan::ValueId value = 0;
  std::vector<plan::Axis> axes; ///< whose ranks hold summands
  bool isReduced = false;       ///< the op itself adds them up: before it partial, after it whole
};

/// By task. Ops are followed from the collectives back: what an all-reduce or reduce-scatter takes is partial; so is
/// what an op of which it comes takes, unless it is there that a cut dimension is summed away.
std::vector<PartialSum> partialSums(const plan::Plan &plan);

} // namespace dg::viz
