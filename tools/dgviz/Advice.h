// SPDX-License-Identifier: Apache-2.0
// What limits a plan and what would help most, in plain words with figures.
#pragma once

#include "tools/dgviz/facts/ProgramView.h"

#include <string>
#include <vector>

namespace dg::viz {

/// Something to try, whose gain is known: the changed plan was simulated again, the search had judged it, or the trace
/// shows it.
struct Change {
  std::string title, why, how; ///< how: the flag to give
  double gainUs = 0;           ///< of one step; where the step has more samples then, of the time for as many as now
  double ofUs = 0;             ///< the step that the gain is a part of: predicted, or measured
};

struct Advice {
  std::string limit;              ///< one sentence
  std::vector<std::string> facts; ///< further sentences: balance, memory, bound, trace
  std::vector<Change> changes;    ///< at most three, the largest gain first; none below one percent of the step
};

/// Fails like simulateProgram.
Result<Advice> adviseOn(const plan::Plan &plan, const ProgramView &view, const partitioner::CostModel &costs);

} // namespace dg::viz
