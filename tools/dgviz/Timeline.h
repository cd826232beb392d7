// SPDX-License-Identifier: Apache-2.0
// When each op of a step runs: as the simulator predicts it, or as a trace measured it. Both have one form, so that
// picture, critical path and comparison need to know only one.
#pragma once

#include "partitioner/CostModel.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace dg::viz {

/// What an op is busy with, for colours and sums.
enum class Work { forward, inputGradient, weightGradient, update, communication, other };
const char *nameOf(Work work);

/// Per task. A backward op works on weight gradients if all that it makes goes to updates without passing through
/// another layer; on input gradients otherwise. Zeroing is "other".
std::vector<Work> workOf(const plan::Plan &plan);

struct TimelineEvent {
  plan::TaskId task = 0;
  uint32_t microbatch = 0;
  uint32_t row = 0;  ///< predicted: the stage; measured: the rank
  uint32_t lane = 0; ///< predicted: 0 computes, 1 communicates; measured: the thread, the last one communicates
  double startUs = 0, endUs = 0;
  bool isCritical = false;
};

/// How a row spends the step; the three add up to it.
struct RowTimes {
  double computeUs = 0;
  double exposedUs = 0; ///< communication that no computation hides
  double idleUs = 0;
};

struct Timeline {
  double totalUs = 0;
  uint32_t numRows = 0, numLanes = 2;
  std::vector<TimelineEvent> events; ///< by start
  double scale = 1; ///< predicted: what the simulated times were multiplied with to agree with the plan's step_us
};

/// Simulates the program on the cluster. If the plan was made for another one, times are scaled to its step_us.
/// Fails like simulateProgram.
Result<Timeline> predictTimeline(const plan::Plan &plan, const plan::Program &program,
                                 const partitioner::CostModel &costs);

std::vector<RowTimes> rowTimes(const plan::Plan &plan, const Timeline &timeline);

/// What the length of the step is made of, along the chain of ops that decides it.
struct CriticalPath {
  double computeUs = 0, communicationUs = 0, waitingUs = 0;
  size_t numEvents = 0;
};

/// Marks the events on the critical path: from the last one back, always to whatever ended last of what it waited for.
CriticalPath markCriticalPath(const plan::Plan &plan, Timeline &timeline);

/// Mean length of an op over micro-batches and rows; -1 where it never ran. Several threads on one op count from the
/// first start to the last end.
std::vector<double> meanTaskUs(const plan::Plan &plan, const Timeline &timeline);

} // namespace dg::viz
