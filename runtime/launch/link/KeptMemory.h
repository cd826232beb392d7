// SPDX-License-Identifier: Apache-2.0
// Memory of a launcher that its ranks write to and that outlives them: what ranks that start anew go on from. It has no
// name, and goes with the launcher.
#pragma once

#include "runtime/support/Status.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace dg {

/// How far rank 0 has told what happens, in numbers that grow with every event: what lies between the two may have been
/// told or not. 0: nothing.
struct ReportMark {
  std::atomic<uint64_t> told = 0, telling = 0;
};

/// Made before ranks are forked. What they write to it is seen by the launcher and by the ranks that come after them.
class KeptMemory {
public:
  /// Two regions of that many bytes for each rank of this launcher; all of it is reserved at once. Fails (usage), with
  /// the bytes needed, where the host has not so much.
  static Result<std::unique_ptr<KeptMemory>> make(const std::vector<uint64_t> &regionBytes);
  KeptMemory(const KeptMemory &) = delete;
  ~KeptMemory();

  using Regions = std::array<std::span<std::byte>, 2>;
  /// Ranks are counted from 0 here, whatever their numbers in the job.
  const Regions &regions(int64_t index) const { return parts[size_t(index)]; }
  ReportMark &mark() const { return *static_cast<ReportMark *>(memory); }

private:
  KeptMemory(void *memory, size_t bytes) : memory(memory), bytes(bytes) {}
  void *memory;
  size_t bytes;
  std::vector<Regions> parts;
};

} // namespace dg
