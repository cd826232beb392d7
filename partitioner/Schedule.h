// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules: in which order a stage runs the forward and backward passes of the micro-batches, and how many of
// them it must keep at once. A schedule is one function and one row of the table in Schedule.cpp.
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dg::partitioner {

/// One pass of one micro-batch through a stage; phase is forward or backward.
struct Pass {
  plan::Phase phase = plan::Phase::forward;
  uint32_t microbatch = 0;
  bool operator==(const Pass &) const = default;
};

struct StageSchedule {
  std::vector<Pass> passes; ///< in the order in which they run
  /// Most micro-batches whose forward pass has started and whose backward pass has not ended: the buffers that an
  /// activation needs when micro-batch m uses slot m % slots.
  uint32_t slots = 1;
};

struct Schedule {
  std::string name;
  std::vector<StageSchedule> stages;
};

/// Succeeds for a schedule that can be made; fails with usage for one that is known but not in this version, and for an
/// unknown name, listing the known ones.
Status checkScheduleName(std::string_view name);

/// The schedule `name` ("gpipe", "1f1b") of one training step. Fails as checkScheduleName does, and with usage when
/// either number is 0.
Result<Schedule> makeSchedule(std::string_view name, uint32_t numStages, uint32_t numMicrobatches);

/// The schedule of eval and infer: forward passes in order, one slot. Fails with usage when either number is 0.
Result<Schedule> makeForwardSchedule(uint32_t numStages, uint32_t numMicrobatches);

} // namespace dg::partitioner
