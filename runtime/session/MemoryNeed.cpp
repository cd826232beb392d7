// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/MemoryNeed.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace dg::session {

uint64_t leastMemoryBytes(const plan::Plan &plan, int64_t numRanks) {
  constexpr uint64_t most = std::numeric_limits<uint64_t>::max();
  std::vector<uint64_t> arenas; // of stages, which have equally many ranks each
  for (const plan::StageMemory &stage : plan.memory)
    arenas.push_back(stage.arenaBytes);
  std::sort(arenas.begin(), arenas.end());
  auto left = uint64_t(std::max<int64_t>(numRanks, 0));
  const uint64_t ranksOfStage = uint64_t(plan.mesh.numRanks()) / std::max<size_t>(arenas.size(), 1);
  uint64_t sum = 0;
  for (uint64_t arena : arenas) {
    const uint64_t ranks = std::min(left, ranksOfStage);
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(arena, ranks, &bytes) || __builtin_add_overflow(sum, bytes, &sum))
      return most;
    left -= ranks;
  }
  return sum;
}

Status checkMemoryNeed(const plan::Plan &plan, int64_t ranksOnHost, std::optional<uint64_t> hostBytes) {
  const uint64_t need = leastMemoryBytes(plan, ranksOnHost);
  if (!hostBytes || need <= *hostBytes)
    return Status::ok();
  constexpr double gigabyte = 1e9;
  return Status::error(ErrorKind::usage,
                       "{} rank{} on this host need{} {:.4g} GB of memory for the plan, and it has {:.4g} GB: use more "
                       "hosts, or compile for more ranks, or with a smaller --batch or --memory",
                       ranksOnHost, ranksOnHost == 1 ? "" : "s", ranksOnHost == 1 ? "s" : "", double(need) / gigabyte,
                       double(*hostBytes) / gigabyte);
}

} // namespace dg::session
