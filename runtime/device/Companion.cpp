// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Companion.h"

namespace dg {

/// Between two looks at the clock a living process loses at most this; more means that it was suspended, and counts as
/// little.
static constexpr uint64_t longestPauseNs = 1'000'000'000, suspendedNs = 10'000'000;

void Patience::count(uint64_t nowNs) {
  uint64_t pause = nowNs - lastNs;
  waitedNs += pause > longestPauseNs ? suspendedNs : pause;
  lastNs = nowNs;
}

bool runCallerNode(const Node &node, uint32_t index, StepContext &step) {
  Operation *awaited = nullptr;
  Progress progress = step.companion.advance(node, index, step.microbatch, awaited);
  if (progress == Progress::pending) {
    Patience patience;
    do {
      step.companion.pollSome();
      if (!step.companion.idle(*awaited, patience))
        return false;
      progress = step.companion.advance(node, index, step.microbatch, awaited);
    } while (progress == Progress::pending);
    step.companion.endWait();
  }
  return progress == Progress::done;
}

} // namespace dg
