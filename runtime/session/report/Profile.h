// SPDX-License-Identifier: Apache-2.0
// --profile: where the time of a step goes, op by op, with the rate that each op reaches.
#pragma once

#include "runtime/device/StepTrace.h"
#include "runtime/plan/Plan.h"

#include <map>
#include <string>
#include <vector>

namespace dg::session {

/// Sums over the steps of each program but its first, which finds caches cold. One thread, between steps.
class Profile {
public:
  explicit Profile(const plan::Plan &plan) : plan(plan), tasks(plan.tasks.size()) {}

  /// What one step recorded.
  void add(plan::ProgramKind program, const StepTrace &trace);

  /// A table for people: for each program its ops, longest first, with microseconds a step (of all threads together),
  /// share of the step, and what an op reaches of `peakFlops`, the most that one thread can do. Empty where nothing was
  /// added.
  std::string table(double peakFlops) const;

private:
  struct Sum {
    uint64_t ns = 0;
    double calls = 0;
  };
  struct Program {
    int64_t steps = -1; ///< that count: the first does not
    uint64_t ns = 0;    ///< from the first start to the last end
    uint64_t dropped = 0;
  };
  std::string tableOf(plan::ProgramKind kind, const Program &program, double peakFlops) const;

  const plan::Plan &plan;
  std::vector<Sum> tasks; ///< by task
  std::map<plan::ProgramKind, Program> programs;
};

} // namespace dg::session
