// SPDX-License-Identifier: Apache-2.0
// The graph as each compiler pass left it, as dgc --save-phases wrote it.
#pragma once

#include "tools/dgviz/FlowGraph.h"

#include <map>
#include <string>
#include <vector>

namespace dg::viz {

struct CompilerPhase {
  std::string pass, summary;                      ///< no pass: the model as it was read
  std::map<std::string, uint64_t> added, removed; ///< by kind of op, against the phase before
  std::map<std::string, uint64_t> kinds;          ///< all ops
  uint64_t numOps = 0;
  FlowGraph graph;              ///< without evaluation, which is a copy of the forward pass; an item is the op's number
  std::vector<std::string> ops; ///< per number: "dg.matmul"
};

/// Fails with badInput; the message names the place in phases.json.
Result<std::vector<CompilerPhase>> phasesFromJson(const std::string &text);

} // namespace dg::viz
