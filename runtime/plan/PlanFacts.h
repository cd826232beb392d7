// SPDX-License-Identifier: Apache-2.0
// What the parts of the verifier and who walks a plan share: where each task stands, what it touches, which values are
// one buffer.
#pragma once

#include "runtime/plan/Plan.h"

#include <vector>

namespace dg::plan {

/// The values that a task touches; for a loop, all that its body touches.
struct TaskAccess {
  std::vector<ValueId> reads, writes;
  /// The reads that need what was there before the task: all of a kernel's; of a loop's those that its body does not
  /// write first.
  std::vector<ValueId> exposed;
};

/// The values that one program touches on one stage.
struct ProgramUse {
  std::vector<ChunkId> chunks;        ///< of this stage, each once, in the order of their first action
  std::vector<bool> written, touched; ///< per value of the plan
  std::vector<bool> crosses;          ///< touched by two chunks, fed or read by the runtime
};

struct PlanFacts {
  std::vector<ChunkId> chunkOf;     ///< per task
  std::vector<uint32_t> positionOf; ///< per task, in its chunk
  std::vector<TaskId> finishOf;     ///< per task; noId if none
  std::vector<TaskAccess> access;   ///< per task
  std::vector<uint32_t>
      bufferOf; ///< per value: equal for values with the same place and size (views, in place), inputs apart
  std::vector<bool> isBody; ///< per chunk
};

/// Parameter, state or constant.
bool isPersistent(ValueKind kind);

/// Checks the structure of chunks on the way: each task in exactly one, dependencies backwards and inside, each
/// communication finished once. The plan's indices must have been checked.
Result<PlanFacts> gatherFacts(const Plan &plan);

/// What `program` touches on `stage`.
ProgramUse gatherUse(const Plan &plan, const PlanFacts &facts, const Program &program, uint32_t stage);

} // namespace dg::plan
