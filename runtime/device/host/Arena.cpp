// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/host/Arena.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace dg {

/// Below this a huge page would be mostly empty.
static constexpr uint64_t hugePageThresholdBytes = uint64_t(4) << 20;

Arena::~Arena() {
  if (start)
    munmap(start, size);
}

Arena::Arena(Arena &&other) noexcept : start(std::exchange(other.start, nullptr)), size(std::exchange(other.size, 0)) {}

Arena &Arena::operator=(Arena &&other) noexcept {
  std::swap(start, other.start);
  std::swap(size, other.size);
  return *this;
}

Result<Arena> Arena::map(uint64_t bytes) {
  Arena arena;
  arena.size = bytes ? bytes : 1;
  void *address = mmap(nullptr, arena.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return Status::error(ErrorKind::runFailed,
                         "no memory for the arena of {} bytes: {}; use more ranks or a plan with a smaller --memory",
                         bytes, std::strerror(errno));
  arena.start = static_cast<std::byte *>(address);
  // Advice only: without huge pages the run is slower, not wrong.
  if (arena.size >= hugePageThresholdBytes)
    (void)madvise(address, arena.size, MADV_HUGEPAGE);
  return arena;
}

} // namespace dg
