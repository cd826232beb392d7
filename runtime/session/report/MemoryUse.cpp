// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/report/MemoryUse.h"

#include <fstream>
#include <sstream>
#include <string>

namespace dg::session {

/// "VmHWM:     1234 kB"
static uint64_t readStatus(const std::string &key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) {
      uint64_t kib = 0;
      std::istringstream(line.substr(key.size())) >> kib;
      return kib << 10;
    }
  return 0;
}

uint64_t residentBytes() { return readStatus("VmRSS:"); }

uint64_t peakResidentBytes() { return readStatus("VmHWM:"); }

} // namespace dg::session
