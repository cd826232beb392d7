// SPDX-License-Identifier: Apache-2.0
// What limits a plan and what would help most, in plain words with figures.
#pragma once

#include "tools/dgviz/ProgramView.h"

#include <string>
#include <vector>

namespace dg::viz {

/// Something to try. The gain is an estimate from the same cost model as the prediction: a bound where `why` says "at
/// most".
struct Change {
  std::string title, why, how; ///< how: the flag to give
  double gainUs = 0;
};

struct Advice {
  std::string limit;              ///< one sentence
  std::vector<std::string> facts; ///< further sentences: balance, memory, bound, trace
  std::vector<Change> changes;    ///< at most three, the largest gain first; none below one percent of the step
};

/// Fails like simulateProgram.
Result<Advice> adviseOn(const plan::Plan &plan, const ProgramView &view, const partitioner::CostModel &costs);

} // namespace dg::viz
