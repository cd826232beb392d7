// SPDX-License-Identifier: Apache-2.0
// The runner of a rank with one thread, and what both runners do with caller-only nodes.
#include "runtime/executor/SegmentRunner.h"

#include "runtime/executor/SpinWait.h"

namespace dg {

Progress advanceCallerNode(const Node &node, uint32_t index, StepContext &step, Operation *&awaited) {
  Communications &communications = step.communications;
  for (Operation *operation : node.operationsOf(index)) {
    Progress progress = communications.poll(*operation);
    if (progress != Progress::done) {
      awaited = operation;
      return progress;
    }
  }
  if (node.kind == NodeKind::start) {
    void *const *buffers = node.row(index);
    communications.start(*node.operationsOf(index).front(), buffers[0], buffers[node.numBuffers - 1], step.microbatch);
  }
  return Progress::done;
}

static bool runCallerNode(const Node &node, uint32_t index, StepContext &step) {
  Operation *awaited = nullptr;
  Progress progress = advanceCallerNode(node, index, step, awaited);
  if (progress == Progress::pending) {
    Patience patience;
    do {
      step.communications.pollSome();
      if (!step.communications.idle(*awaited, patience))
        return false;
      progress = advanceCallerNode(node, index, step, awaited);
    } while (progress == Progress::pending);
    step.progress.waitingFor.store(0, std::memory_order_relaxed);
  }
  return progress == Progress::done;
}

template <bool isTraced> bool runInOrder(const Segment &segment, uint32_t index, StepContext &step) {
  Communications &communications = step.communications;
  for (const Node &node : segment.nodes) {
    step.progress.task.store(node.task + 1, std::memory_order_relaxed);
    uint64_t startNs = isTraced ? nowNs() : 0;
    if (node.isCallerOnly()) {
      if (!runCallerNode(node, index, step))
        return false;
    } else if (node.kind == NodeKind::kernel) {
      void *const *buffers = node.row(index);
      for (uint32_t tile = 0; tile < node.tiles; ++tile) {
        node.kernel(buffers, &step.scalars, tile);
        communications.pollSome();
      }
    } else {
      node.runTile(index, step.scalars, 0);
      communications.pollSome();
    }
    if (isTraced && (!node.isCallerOnly() || node.kind == NodeKind::finish))
      step.trace->record(0, {startNs, nowNs(), node.task, step.microbatch, node.tiles});
  }
  return !communications.hasFailed();
}

template bool runInOrder<false>(const Segment &, uint32_t, StepContext &);
template bool runInOrder<true>(const Segment &, uint32_t, StepContext &);

} // namespace dg
