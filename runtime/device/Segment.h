// SPDX-License-Identifier: Apache-2.0
// Prepared work: a segment is a graph of nodes whose addresses and kernels are resolved, in the plan's order. The
// executor makes it, a device prepares and runs it. Nodes of the caller (communications) stand among the others, so
// that a device can go on with what does not depend on them.
//
// A segment is prepared once, whatever the number of micro-batches or trips: run number `index` of it (the micro-batch,
// in a loop body the trip) takes row index % period of each node's tables.
#pragma once

#include "runtime/abi/KernelAbi.h"
#include "runtime/plan/Plan.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace dg {

struct Operation; ///< a communication of the executor; devices only pass it on

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
  dg_kernel kernel = nullptr;     ///< kernel: resolved by a device whose kernels are functions of this process
  void *const *buffers = nullptr; ///< period × numBuffers device addresses; of a start: what its operation is given
  BlockCopy copy;                 ///< blockCopy
  /// start, finish: one operation for each row, or one for all. awaitSends: a list for each row.
  std::vector<std::vector<Operation *>> operations;

  bool isCallerOnly() const { return kind >= NodeKind::start; }
  void *const *row(uint32_t index) const { return buffers + (period == 1 ? 0 : index % period) * numBuffers; }
  const std::vector<Operation *> &operationsOf(uint32_t index) const {
    return operations[operations.size() == 1 ? 0 : index % operations.size()];
  }
  /// One tile of a node that is not caller-only, on buffers that this process can reach. Any thread.
  void runTile(uint32_t index, const dg_scalars &scalars, uint32_t tile) const;
};

/// What a device makes of a segment. Keeps no pointer to the segment itself, which may move until steps run.
struct PreparedWork {
  virtual ~PreparedWork() = default;
};

struct Segment {
  std::vector<Node> nodes;
  std::vector<double> costs; ///< of a node, in nanoseconds, roughly
  std::vector<uint32_t> numDependencies;
  std::vector<uint32_t> successorsBegin, successors; ///< of node i: successors[successorsBegin[i] … [i + 1])
  std::vector<void *> bufferTables;
  std::unique_ptr<PreparedWork> prepared; ///< what the device has made of it, and alone knows; may be null
};

} // namespace dg
