// SPDX-License-Identifier: Apache-2.0
// A run of a plan whose times are known: every op takes as long as the test says, everything starts as soon as it can.
#pragma once

#include "runtime/plan/Plan.h"

#include <functional>
#include <string>

namespace dg::viz::testing {

struct RunTimes {
  /// Of a kernel, copy or zero on a rank.
  std::function<double(int64_t rank, plan::TaskId task, uint32_t microbatch)> computeUs;
  double communicationUs = 0.5; ///< once all ranks take part
};

/// The trace of one step of the plan's first program, as dgrun --trace writes it: thread 0 computes and waits, thread 1
/// communicates.
std::string traceOfRun(const plan::Plan &plan, const RunTimes &times);

} // namespace dg::viz::testing
