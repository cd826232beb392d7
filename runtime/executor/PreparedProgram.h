// SPDX-License-Identifier: Apache-2.0
// A program as a step runs it: chunks cut into segments of nodes whose pointers, kernels and communications are
// resolved.
//
//   PreparedProgram ── actions (chunk, micro-batch), in order
//   PreparedChunk ── parts, in order: a segment of nodes, or a loop over another chunk
//   Segment ── nodes in the plan's order and the edges among them; nothing crosses a part but "complete"
//
// A chunk is prepared once, whatever the number of micro-batches or trips: run number `index` of it (the micro-batch,
// in a loop body the trip) takes row index % period of each node's tables.
#pragma once

#include "runtime/abi/KernelAbi.h"
#include "runtime/executor/Communications.h"
#include "runtime/plan/Plan.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

namespace dg {

enum class NodeKind : uint8_t {
  kernel,    ///< calls a function for each tile
  blockCopy, ///< copy, zero and slice tasks, and collectives of one rank
  // What follows is run by the calling thread only, because it may touch the transport.
  start,      ///< starts an operation
  finish,     ///< complete when its operation is
  awaitSends, ///< complete when no operation still reads memory that the next node writes
};

/// Rows of `copiedBytes` from the source, each filled up with zeros to `toBytes`.
struct BlockCopy {
  size_t rows = 1, copiedBytes = 0, fromOffset = 0, fromStride = 0, toBytes = 0;
};

struct Node {
  NodeKind kind = NodeKind::kernel;
  plan::TaskId task = 0;
  uint32_t tiles = 1;
  uint32_t period = 1;            ///< rows in the tables below
  uint32_t numBuffers = 0;        ///< pointers in a row
  dg_kernel kernel = nullptr;     ///< kernel
  void *const *buffers = nullptr; ///< period × numBuffers
  BlockCopy copy;                 ///< blockCopy
  /// start, finish: one operation for each row, or one for all. awaitSends: a list for each row.
  std::vector<std::vector<Operation *>> operations;

  bool isCallerOnly() const { return kind >= NodeKind::start; }
  void *const *row(uint32_t index) const { return buffers + (period == 1 ? 0 : index % period) * numBuffers; }
  const std::vector<Operation *> &operationsOf(uint32_t index) const {
    return operations[operations.size() == 1 ? 0 : index % operations.size()];
  }
  /// One tile of a node that is not caller-only. Any thread.
  void runTile(uint32_t index, const dg_scalars &scalars, uint32_t tile) const;
};

/// What threads share about a node while its segment runs. The counters restore themselves as they run out, so that a
/// segment needs no clearing between two runs.
struct alignas(64) NodeState {
  std::atomic<uint32_t> openBlocks; ///< blocks with tiles to claim
  std::atomic<uint32_t> undone;     ///< tiles not yet complete
  std::atomic<uint32_t> pending;    ///< dependencies not yet complete
  uint32_t firstBlock, numBlocks;   ///< in SharedSegment::blocks; none of a node that only the calling thread runs
};

/// Tiles begin to end of a node, which one thread takes before any other. Threads take the same block of every node:
/// what a thread has written in one node is then in its own cache in the next.
struct alignas(64) TileBlock {
  std::atomic<uint32_t> next; ///< the first that nobody has claimed; end or more: nothing to claim
  uint32_t begin, end;
};

/// The shared part of a segment; exists only when a rank has several threads and the segment work for them. Bit p of
/// the words stands for node order[p], the longest way to the end of the segment first.
struct SharedSegment {
  SharedSegment(const struct Segment &segment, uint32_t threads);
  size_t numWords;
  std::vector<uint32_t> order, position; ///< node of a bit, bit of a node
  std::vector<NodeState> states;
  std::vector<TileBlock> blocks;
  std::vector<std::atomic<uint64_t>> ready;                 ///< nodes with tiles to claim
  alignas(64) std::vector<std::atomic<uint64_t>> forCaller; ///< caller-only nodes to be advanced
  alignas(64) std::atomic<uint32_t> remaining{0};           ///< nodes not yet complete
  uint32_t index = 0;                                       ///< of this run
};

struct Segment {
  std::vector<Node> nodes;
  std::vector<double> costs; ///< of a node, in nanoseconds, roughly
  std::vector<uint32_t> numDependencies;
  std::vector<uint32_t> successorsBegin, successors; ///< of node i: successors[successorsBegin[i] … [i + 1])
  std::vector<void *> bufferTables;
  std::unique_ptr<SharedSegment> shared; ///< null: the calling thread runs it alone, in the plan's order
};

struct PreparedChunk;

/// Either a segment, or a loop when `body` is set.
struct Part {
  Segment segment;
  PreparedChunk *body = nullptr;
  uint32_t trips = 0;
};

struct PreparedChunk {
  std::vector<Part> parts;
};

struct PreparedAction {
  PreparedChunk *chunk = nullptr;
  uint32_t microbatch = 0;
};

struct PreparedProgram {
  std::vector<std::unique_ptr<PreparedChunk>> chunks;
  std::vector<PreparedAction> actions;
  size_t numTiles = 0;   ///< of one step, for the size of a trace
  bool isShared = false; ///< helpers have something to do
};

} // namespace dg
