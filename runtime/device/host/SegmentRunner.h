// SPDX-License-Identifier: Apache-2.0
// The two ways to run a segment: in the plan's order on the calling thread, or by several threads, each node as soon as
// what it depends on is complete. Both exist with and without tracing, as separate code.
#pragma once

#include "runtime/device/Companion.h"
#include "runtime/device/host/SharedSegment.h"
#include "runtime/device/host/WorkerTeam.h"

#include <atomic>

namespace dg {

/// Runs number `index` of the segment in the plan's order. False when a communication failed.
template <bool isTraced> bool runInOrder(const Segment &segment, uint32_t index, StepContext &step);

/// Runs segments with the help of a team. Ready nodes are bits of a few words, the most urgent first; their tiles are
/// claimed by counting up, a thread's own block first, then what is left of others'. Counters restore themselves, so
/// that a helper that is late by a whole run, or many, can still only claim a tile that is free and ready now.
template <bool isTraced> class SharedRunner final : public WorkSource {
public:
  explicit SharedRunner(StepContext &step) : step(step) {}

  /// Runs number `index` of the segment, and returns when all of it is complete. False when a communication failed;
  /// helpers may then still be at work. Calling thread only.
  bool run(const Segment &segment, uint32_t index);
  /// Helpers.
  bool runSome(uint32_t lane) override;

private:
  static constexpr uint32_t none = UINT32_MAX;
  void release(const Segment &segment, uint32_t node);
  uint32_t complete(const Segment &segment, uint32_t node);
  uint32_t claimTile(SharedSegment &shared, uint32_t node, uint32_t lane);
  void runFrom(const Segment &segment, uint32_t node, uint32_t tile, uint32_t lane);
  void runChain(const Segment &segment, uint32_t node, uint32_t lane);
  bool claim(const Segment &segment, uint32_t lane);
  bool advanceCallerNodes(const Segment &segment, Operation *&awaited);

  StepContext &step;
  alignas(64) std::atomic<const Segment *> current{nullptr};
};

} // namespace dg
