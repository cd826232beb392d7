// SPDX-License-Identifier: Apache-2.0
// The runner of a rank with one thread, and what both runners do with caller-only nodes.
#include "runtime/executor/SegmentRunner.h"

#include "runtime/support/SpinWait.h"

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

bool runNode(const Node &node, uint32_t index, StepContext &step) {
  step.progress.task.store(node.task + 1, std::memory_order_relaxed);
  if (node.isCallerOnly())
    return runCallerNode(node, index, step);
  if (node.kind == NodeKind::kernel) {
    void *const *buffers = node.row(index);
    for (uint32_t tile = 0; tile < node.tiles; ++tile) {
      node.kernel(buffers, &step.scalars, tile);
      step.communications.pollSome();
    }
  } else {
    node.runTile(index, step.scalars, 0);
    step.communications.pollSome();
  }
  return true;
}

template <bool isTraced> bool runInOrder(const Segment &segment, uint32_t index, StepContext &step) {
  for (const Node &node : segment.nodes) {
    uint64_t startNs = isTraced ? nowNs() : 0;
    if (!runNode(node, index, step))
      return false;
    if (isTraced && (!node.isCallerOnly() || node.kind == NodeKind::finish))
      step.trace->record(0, {startNs, nowNs(), node.task, step.microbatch, node.tiles});
  }
  return !step.communications.hasFailed();
}

template bool runInOrder<false>(const Segment &, uint32_t, StepContext &);
template bool runInOrder<true>(const Segment &, uint32_t, StepContext &);

} // namespace dg
