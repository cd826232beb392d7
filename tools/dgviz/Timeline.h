// SPDX-License-Identifier: Apache-2.0
// When each action of a program runs, as the plan predicts it: for the picture of the schedule.
#pragma once

#include "runtime/plan/Plan.h"

#include <vector>

namespace dg::viz {

struct TimelineBar {
  plan::ChunkId chunk = 0;
  uint32_t microbatch = 0;
  double startUs = 0, endUs = 0;
};

struct Timeline {
  double totalUs = 0;
  std::vector<std::vector<TimelineBar>> stages;
  bool isToScale = false; ///< whether times are scaled to the plan's prediction; otherwise they are proportions
};

/// Actions start when the one before is done and what they receive was sent. A chunk takes time in proportion to its
/// flops and bytes; the whole is scaled to predicted.step_us for the program "train". Actions that can never start are
/// left out.
Timeline timelineOf(const plan::Plan &plan, const plan::Program &program);

} // namespace dg::viz
