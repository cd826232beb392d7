// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/RequestBound.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>

namespace dg {

static constexpr uint64_t mostRequests = uint64_t(1) << 18;

/// An all-reduce has two segments under way, each with its parts and its sums to and from every other rank; other
/// collectives have one message in each direction.
static uint64_t requestsOf(const plan::Plan &plan, const plan::Task &task) {
  if (task.as<plan::Receive>())
    return 1;
  if (const auto *send = task.as<plan::Send>()) // each slot of its value may be on the way
    return plan.values[send->value].slots;
  if (!plan::isCollective(task.kind()))
    return 0;
  const uint64_t others = uint64_t(plan.mesh.sizeOf(*axisOf(task)) - 1);
  return others * (task.as<plan::AllReduce>() ? 8 : 2);
}

uint32_t requestsNeeded(const plan::Plan &plan, uint32_t stage) {
  std::vector<uint64_t> needed(plan.programs.size(), 0);
  for (const plan::Chunk &chunk : plan.chunks)
    if (chunk.stage == stage)
      for (plan::TaskId task : chunk.tasks)
        needed[chunk.program] = std::min(mostRequests, needed[chunk.program] + requestsOf(plan, plan.tasks[task]));
  return needed.empty() ? 0 : uint32_t(*std::max_element(needed.begin(), needed.end()));
}

} // namespace dg
