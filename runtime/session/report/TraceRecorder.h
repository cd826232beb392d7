// SPDX-License-Identifier: Apache-2.0
// --trace: what each task of the first steps did and when, as JSON that Perfetto and chrome://tracing open. Each rank
// keeps its own events; at the end they are put into one file. --profile: the same, summed by op.
#pragma once

#include "runtime/checkpoint/CheckpointWriter.h"
#include "runtime/device/StepTrace.h"
#include "runtime/plan/Plan.h"
#include "runtime/session/report/Profile.h"

#include <string>

namespace dg::session {

/// One rank's events. One thread, between steps.
class TraceRecorder {
public:
  /// Steps after this many are not recorded: a trace is for looking at, and grows by kilobytes with each task.
  static constexpr int64_t maxSteps = 100;

  /// What becomes of the events that a step records.
  struct Uses {
    bool file = false, profile = false;
  };
  TraceRecorder(const plan::Plan &plan, int64_t rank, Uses uses) : plan(plan), rank(rank), uses(uses), sums(plan) {}
  /// For ExecutorOptions::trace.
  StepTrace *hook() { return &trace; }
  /// After each step of any program: takes what it recorded.
  void collect(plan::ProgramKind program, int64_t step);
  /// What Uses::profile summed up.
  const Profile &profile() const { return sums; }
  /// Every rank writes its part beside `path`; rank 0 joins them and renames. Fails (runFailed) on every rank if it
  /// fails on one.
  Status write(const std::string &path, const checkpoint::Agreement &agree);
  /// What ranks that were ended meanwhile have left beside `path`.
  static void removeUnfinished(const std::string &path, int64_t numRanks);

private:
  Status writePart(const std::string &path) const;
  Status join(const std::string &path) const;
  const plan::Plan &plan;
  int64_t rank, steps = 0;
  Uses uses;
  Profile sums;
  StepTrace trace;
  std::string events; ///< JSON objects, each followed by a comma and a newline
};

} // namespace dg::session
