// SPDX-License-Identifier: Apache-2.0
// The runner of a rank with one thread.
#include "runtime/device/host/SegmentRunner.h"

#include "runtime/support/SpinWait.h"

namespace dg {

/// Runs one node to its end. False when a communication failed.
static bool runNode(const Node &node, uint32_t index, StepContext &step) {
  step.runningTask.store(node.task + 1, std::memory_order_relaxed);
  if (node.isCallerOnly())
    return runCallerNode(node, index, step);
  if (node.kind == NodeKind::kernel) {
    void *const *buffers = node.row(index);
    for (uint32_t tile = 0; tile < node.tiles; ++tile) {
      node.kernel(buffers, &step.scalars, tile);
      step.companion.pollSome();
    }
  } else {
    node.runTile(index, step.scalars, 0);
    step.companion.pollSome();
  }
  return true;
}

template <bool isTraced> bool runInOrder(const Segment &segment, uint32_t index, StepContext &step) {
  for (const Node &node : segment.nodes) {
    uint64_t startNs = isTraced ? nowNs() : 0;
    if (!runNode(node, index, step))
      return false;
    if (isTraced && (!node.isCallerOnly() || node.kind == NodeKind::finish))
      step.trace->record(0, {startNs, nowNs(), node.task, step.microbatch, node.tiles, node.tiles});
  }
  return !step.companion.hasFailed();
}

template bool runInOrder<false>(const Segment &, uint32_t, StepContext &);
template bool runInOrder<true>(const Segment &, uint32_t, StepContext &);

} // namespace dg
