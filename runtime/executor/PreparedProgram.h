// SPDX-License-Identifier: Apache-2.0
// A program as a step runs it: chunks cut into segments of nodes whose addresses, kernels and communications are
// resolved.
//
//   PreparedProgram ── actions (chunk, micro-batch), in order: all, and those of this rank's replica
//   PreparedChunk ── parts, in order: a segment of nodes, or a loop over another chunk
//   Segment ── nodes in the plan's order and the edges among them; nothing crosses a part but "complete"
#pragma once

#include "runtime/device/Segment.h"

#include <array>

namespace dg {

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
  bool isPerMicrobatch = false;
};

struct PreparedProgram {
  std::vector<std::unique_ptr<PreparedChunk>> chunks;
  std::vector<PreparedAction> all, actions;
  size_t lastOfMicrobatches = 0; ///< the last of the actions that belong to a micro-batch
  size_t numTiles = 0;           ///< of one step over all micro-batches, for the size of a trace
  bool hasPreparedWork = false;  ///< the device has prepared something for a segment
  Segment feed;                  ///< from the twins of inputs to the inputs; empty where they have none

  /// From now on a step runs these micro-batches, from the first to the one behind the last.
  void keep(std::array<uint32_t, 2> microbatches) {
    actions.clear();
    for (const PreparedAction &action : all)
      if (!action.isPerMicrobatch || (microbatches[0] <= action.microbatch && action.microbatch < microbatches[1])) {
        if (action.isPerMicrobatch)
          lastOfMicrobatches = actions.size();
        actions.push_back(action);
      }
  }
};

} // namespace dg
