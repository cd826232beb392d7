// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/HostCores.h"

#include <sched.h>

namespace dg {

std::vector<int> usableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set))
        cores.push_back(core);
  if (cores.empty()) // more cores than the set can name
    cores.push_back(0);
  return cores;
}

CoreUse coreUseOf(int64_t index, int64_t ranksOnHost, uint32_t threads, const std::vector<int> &cores) {
  CoreUse use;
  const int64_t numCores = int64_t(cores.size());
  use.isShared = ranksOnHost > numCores;
  if (use.isShared && threads == 1 && ranksOnHost % numCores == 0)
    use.core = cores[size_t(index % numCores)];
  return use;
}

bool stayOnCore(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

} // namespace dg
