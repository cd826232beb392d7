// SPDX-License-Identifier: Apache-2.0
// The cores of a host and how its ranks divide them, for hosts with more ranks than cores too.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace dg {

/// The cores that this process may use, in rising order; never empty.
std::vector<int> usableCores();

/// How one rank uses the cores of its host.
struct CoreUse {
  bool isShared = false;   ///< there are more ranks than cores
  std::optional<int> core; ///< the one to stay on; none: the system decides
};

/// `index` counts the ranks of the host from 0. Ranks that share cores evenly are dealt out in turn and stay: who waits
/// for another keeps asking for its core, so the system sees two busy cores however unevenly the ranks lie on them, and
/// two neighbours of a pipeline may meet on one for the whole run. Ranks with several threads, or of a number that no
/// dealing divides evenly, are left to the system.
CoreUse coreUseOf(int64_t index, int64_t ranksOnHost, uint32_t threads, const std::vector<int> &cores);

/// Keeps the calling thread, and those that it starts from now on, on one core. False if the system refuses.
bool stayOnCore(int core);

} // namespace dg
