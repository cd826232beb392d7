// SPDX-License-Identifier: Apache-2.0
// The chain of ops that decides how long a step is, from rank to rank.
#pragma once

#include "tools/dgviz/time/Timeline.h"

namespace dg::viz {

/// Where the chain goes from one row to another.
struct Crossing {
  uint32_t from = 0, to = 0;
  double timeUs = 0;
};

/// What the length of the step is made of along the chain; the three times add up to it.
struct CriticalPath {
  double computeUs = 0, communicationUs = 0, waitingUs = 0;
  size_t numEvents = 0;
  std::vector<Crossing> crossings; ///< from the last to the first
  std::vector<double> taskUs;      ///< per task: its share of the chain
};

/// Marks the events on the critical path: from the last one back, always to what it waited for longest. In its own row
/// that is what ended last of its dependencies and of what ran before it; a communication that waited for another rank
/// leads to that rank's part in it.
CriticalPath markCriticalPath(const plan::Plan &plan, Timeline &timeline);

} // namespace dg::viz
