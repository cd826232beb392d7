// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/SystemMemory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

namespace dg {

/// The number behind `name` in a file of the kernel.
static std::optional<uint64_t> readNumber(const char *path, const char *name) {
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path, "r"), std::fclose);
  char line[256];
  const size_t length = std::strlen(name);
  unsigned long long number = 0;
  while (file && std::fgets(line, sizeof line, file.get()))
    if (std::strncmp(line, name, length) == 0 && std::sscanf(line + length, "%llu", &number) == 1)
      return number;
  return std::nullopt;
}

static std::optional<uint64_t> ofHost(const char *name) {
  auto kilobytes = readNumber("/proc/meminfo", name);
  return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
}

/// The limit of the control group, of which there are two versions; one that is not set is larger than any memory.
static std::optional<uint64_t> limitOfGroup() {
  auto limit = readNumber("/sys/fs/cgroup/memory.max", "");
  return limit ? limit : readNumber("/sys/fs/cgroup/memory/memory.limit_in_bytes", "");
}

static std::optional<uint64_t> usedOfGroup() {
  auto used = readNumber("/sys/fs/cgroup/memory.current", "");
  return used ? used : readNumber("/sys/fs/cgroup/memory/memory.usage_in_bytes", "");
}

std::optional<uint64_t> totalMemoryBytes() {
  std::optional<uint64_t> total = ofHost("MemTotal:");
  if (total)
    *total += ofHost("SwapTotal:").value_or(0);
  if (auto limit = limitOfGroup())
    total = std::min(total.value_or(UINT64_MAX), *limit);
  return total;
}

std::optional<uint64_t> availableMemoryBytes() {
  std::optional<uint64_t> least = ofHost("MemAvailable:");
  if (auto limit = limitOfGroup(), used = usedOfGroup(); limit && used)
    least = std::min(least.value_or(UINT64_MAX), *limit > *used ? *limit - *used : 0);
  return least;
}

} // namespace dg
