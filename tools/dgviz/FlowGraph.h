// SPDX-License-Identifier: Apache-2.0
// What is drawn as a graph, whatever it comes from (a program of a plan, or the model after a compiler pass): named ops
// and the values that flow between them.
#pragma once

#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace dg::viz {

struct FlowNode {
  std::string name; ///< "b0_attn/matmul"
  plan::Phase phase = plan::Phase::forward;
  uint32_t stage = 0;
  uint32_t item = 0; ///< what it stands for: the task, or the op's number in its phase
};

struct FlowEdge {
  uint32_t from = 0, to = 0; ///< indices into nodes
  uint64_t bytes = 0;        ///< of one micro-batch; 0: not known
  std::string route;         ///< "send · pipe", "all_reduce · data" where it crosses devices, else empty
};

struct FlowGraph {
  std::vector<FlowNode> nodes; ///< by phase, then by stage, in the order in which they run
  std::vector<FlowEdge> edges; ///< each pair once
};

/// The tasks of a program. The start of a communication and its finish are one node; begin chunks (zeroing) are left
/// out. Flow follows the bytes: a read comes from the last task that wrote the same place.
FlowGraph flowOf(const plan::Plan &plan, const plan::Program &program);

/// Collective, send or receive.
/// The chunks that a program runs, each once, by phase and then by stage.
std::vector<plan::ChunkId> chunksOf(const plan::Plan &plan, const plan::Program &program);

} // namespace dg::viz
