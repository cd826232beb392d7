// SPDX-License-Identifier: Apache-2.0
// The runner of a rank with several threads. The life of a node:
//
//   pending > 0 ──last dependency complete──▶ released: blocks opened, bit set ──tiles claimed by counting up──▶
//   last tile of all claimed: bit cleared ──last tile complete──▶ complete: successors' pending counted down
//
// The first claim in a block synchronises with the node's release, and its release with every dependency's completion.
#include "runtime/device/host/SegmentRunner.h"

#include "runtime/support/SpinWait.h"

#include <bit>
#include <thread>

namespace dg {

static constexpr uint32_t spinsBeforeYield = 4000;

/// What HostDevice has prepared of a segment that threads share.
static SharedSegment &sharedOf(const Segment &segment) { return static_cast<SharedSegment &>(*segment.prepared); }

static void setBit(std::vector<std::atomic<uint64_t>> &words, uint32_t bit) {
  words[bit / 64].fetch_or(uint64_t(1) << bit % 64, std::memory_order_release);
}

static void clearBit(std::vector<std::atomic<uint64_t>> &words, uint32_t bit) {
  words[bit / 64].fetch_and(~(uint64_t(1) << bit % 64), std::memory_order_relaxed);
}

template <bool isTraced> void SharedRunner<isTraced>::release(const Segment &segment, uint32_t node) {
  SharedSegment &shared = sharedOf(segment);
  uint32_t bit = shared.position[node];
  if (segment.nodes[node].isCallerOnly()) {
    setBit(shared.forCaller, bit);
  } else {
    NodeState &state = shared.states[node];
    state.openBlocks.store(state.numBlocks, std::memory_order_relaxed);
    for (uint32_t i = 0; i < state.numBlocks; ++i) {
      TileBlock &block = shared.blocks[state.firstBlock + i];
      block.next.store(block.begin, std::memory_order_release);
    }
    setBit(shared.ready, bit);
  }
}

/// Releases what waited for this node only. Returns one successor of a single tile for the caller to run at once,
/// without telling others.
template <bool isTraced> uint32_t SharedRunner<isTraced>::complete(const Segment &segment, uint32_t node) {
  SharedSegment &shared = sharedOf(segment);
  uint32_t next = none;
  for (uint32_t i = segment.successorsBegin[node]; i < segment.successorsBegin[node + 1]; ++i) {
    uint32_t successor = segment.successors[i];
    std::atomic<uint32_t> &pending = shared.states[successor].pending;
    if (pending.fetch_sub(1, std::memory_order_acq_rel) != 1)
      continue;
    pending.store(segment.numDependencies[successor], std::memory_order_relaxed);
    if (next == none && segment.nodes[successor].tiles == 1 && !segment.nodes[successor].isCallerOnly())
      next = successor;
    else
      release(segment, successor);
  }
  shared.remaining.fetch_sub(1, std::memory_order_acq_rel);
  return next;
}

/// A tile of a node for this thread to run, from its own block as long as that has some; none where all are given out.
template <bool isTraced>
uint32_t SharedRunner<isTraced>::claimTile(SharedSegment &shared, uint32_t node, uint32_t lane) {
  NodeState &state = shared.states[node];
  for (uint32_t i = 0; i < state.numBlocks; ++i) {
    TileBlock &block = shared.blocks[state.firstBlock + (lane + i) % state.numBlocks];
    // Looking first keeps the counter from running away, and the line where it is.
    if (block.next.load(std::memory_order_relaxed) >= block.end)
      continue;
    uint32_t tile = block.next.fetch_add(1, std::memory_order_acquire);
    if (tile >= block.end)
      continue;
    // Before the last tile runs, so that the node cannot be released again meanwhile.
    if (tile + 1 == block.end && state.openBlocks.fetch_sub(1, std::memory_order_acq_rel) == 1)
      clearBit(shared.ready, shared.position[node]);
    return tile;
  }
  return none;
}

/// Runs a claimed tile, then whatever tiles of the node are left, and what that completes.
template <bool isTraced>
void SharedRunner<isTraced>::runFrom(const Segment &segment, uint32_t index, uint32_t tile, uint32_t lane) {
  SharedSegment &shared = sharedOf(segment);
  const Node &node = segment.nodes[index];
  NodeState &state = shared.states[index];
  uint64_t startNs = isTraced ? nowNs() : 0;
  uint32_t count = 0;
  for (; tile != none; tile = claimTile(shared, index, lane)) {
    node.runTile(shared.index, step.scalars, tile);
    ++count;
    if (lane == 0)
      step.companion.pollSome();
  }
  if constexpr (isTraced)
    step.trace->record(lane, {startNs, nowNs(), node.task, step.microbatch, count, node.tiles});
  if (state.undone.fetch_sub(count, std::memory_order_acq_rel) != count)
    return;
  state.undone.store(node.tiles, std::memory_order_relaxed);
  runChain(segment, complete(segment, index), lane);
}

/// Runs a node of one tile that nobody else knows of, then its successors of that kind.
template <bool isTraced> void SharedRunner<isTraced>::runChain(const Segment &segment, uint32_t index, uint32_t lane) {
  while (index != none) {
    const Node &node = segment.nodes[index];
    uint64_t startNs = isTraced ? nowNs() : 0;
    node.runTile(sharedOf(segment).index, step.scalars, 0);
    if (lane == 0)
      step.companion.pollSome();
    if constexpr (isTraced)
      step.trace->record(lane, {startNs, nowNs(), node.task, step.microbatch, 1});
    index = complete(segment, index);
  }
}

template <bool isTraced> bool SharedRunner<isTraced>::claim(const Segment &segment, uint32_t lane) {
  SharedSegment &shared = sharedOf(segment);
  for (size_t word = 0; word < shared.numWords; ++word)
    for (uint64_t bits = shared.ready[word].load(std::memory_order_relaxed); bits != 0; bits &= bits - 1) {
      uint32_t index = shared.order[word * 64 + size_t(std::countr_zero(bits))];
      uint32_t tile = claimTile(shared, index, lane);
      if (tile == none)
        continue;
      if (lane == 0)
        step.runningTask.store(segment.nodes[index].task + 1, std::memory_order_relaxed);
      runFrom(segment, index, tile, lane);
      return true;
    }
  return false;
}

/// True when something was complete.
template <bool isTraced> bool SharedRunner<isTraced>::advanceCallerNodes(const Segment &segment, Operation *&awaited) {
  SharedSegment &shared = sharedOf(segment);
  bool advanced = false;
  for (size_t word = 0; word < shared.numWords; ++word)
    for (uint64_t bits = shared.forCaller[word].load(std::memory_order_acquire); bits != 0; bits &= bits - 1) {
      uint32_t bit = uint32_t(word * 64) + uint32_t(std::countr_zero(bits));
      uint32_t index = shared.order[bit];
      const Node &node = segment.nodes[index];
      Operation *waiting = nullptr;
      Progress progress = step.companion.advance(node, shared.index, step.microbatch, waiting);
      if (progress != Progress::done) {
        if (!awaited) {
          awaited = waiting;
          step.runningTask.store(node.task + 1, std::memory_order_relaxed);
        }
        continue;
      }
      advanced = true;
      if constexpr (isTraced)
        if (node.kind == NodeKind::finish) {
          uint64_t now = nowNs();
          step.trace->record(0, {now, now, node.task, step.microbatch, 1});
        }
      clearBit(shared.forCaller, bit);
      runChain(segment, complete(segment, index), 0);
    }
  return advanced;
}

template <bool isTraced> bool SharedRunner<isTraced>::run(const Segment &segment, uint32_t index) {
  SharedSegment &shared = sharedOf(segment);
  shared.index = index;
  shared.remaining.store(uint32_t(segment.nodes.size()), std::memory_order_relaxed);
  for (uint32_t node = 0; node < segment.nodes.size(); ++node)
    if (segment.numDependencies[node] == 0)
      release(segment, node);
  current.store(&segment, std::memory_order_release);

  Patience patience;
  uint32_t spins = 0;
  while (shared.remaining.load(std::memory_order_acquire) != 0) {
    Operation *awaited = nullptr;
    bool advanced = advanceCallerNodes(segment, awaited);
    step.companion.pollSome();
    if (step.companion.hasFailed())
      return false;
    if (claim(segment, 0) || advanced) {
      if (patience.spins != 0)
        step.companion.endWait();
      patience = {};
      spins = 0;
    } else if (awaited) {
      if (!step.companion.idle(*awaited, patience))
        return false;
    } else if (++spins < spinsBeforeYield) {
      pauseCore();
    } else {
      std::this_thread::yield();
    }
  }
  return true;
}

template <bool isTraced> bool SharedRunner<isTraced>::runSome(uint32_t lane) {
  const Segment *segment = current.load(std::memory_order_acquire);
  return segment && claim(*segment, lane);
}

template class SharedRunner<false>;
template class SharedRunner<true>;

} // namespace dg
