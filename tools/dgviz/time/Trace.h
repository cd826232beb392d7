// SPDX-License-Identifier: Apache-2.0
// What `dgrun --trace` wrote, read back as timelines of the plan it belongs to.
#pragma once

#include "tools/dgviz/time/Timeline.h"

#include <map>
#include <string>

namespace dg::viz {

struct MeasuredProgram {
  std::vector<std::pair<int64_t, double>> steps; ///< number and length in µs of every whole step, as they ran
  int64_t shownStep = 0;
  Timeline timeline; ///< of the step of median length, without the first; times from its start
};

struct Trace {
  std::string path;
  std::map<plan::ProgramKind, MeasuredProgram> programs;
};

/// Fails with badInput if the file is no trace, is damaged, or is a trace of another plan: every event must name an op
/// of this one.
Result<Trace> readTrace(const std::string &path, const plan::Plan &plan);

} // namespace dg::viz
