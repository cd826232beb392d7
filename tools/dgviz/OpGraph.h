// SPDX-License-Identifier: Apache-2.0
// A program as a graph that fits a page: its tasks grouped by layer, the edges being the values that flow between
// groups.
#pragma once

#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace dg::viz {

/// What is drawn as one box.
struct OpGroup {
  std::string title; ///< what the names of its tasks begin with: "fc1", "grad fc1.weight"
  uint32_t stage = 0;
  plan::Phase phase = plan::Phase::forward;
  std::vector<plan::TaskId> tasks;
  double flops = 0, bytes = 0; ///< of one micro-batch on one rank
  bool communicates = false;
};

struct GroupEdge {
  uint32_t from = 0, to = 0; ///< indices into groups
  uint64_t bytes = 0;        ///< of the values that flow, one micro-batch
  bool crossesStages = false;
};

struct OpGraph {
  std::string grouping; ///< how the tasks were grouped, for people
  std::vector<OpGroup> groups;
  std::vector<GroupEdge> edges;
};

/// Groups by the name before '/', then by ever fewer of its dotted parts, then by chunk, until at most `maxGroups` are
/// left. Begin chunks (zeroing) are left out. The plan must have been read by fromJson or verified.
OpGraph groupOps(const plan::Plan &plan, const plan::Program &program, size_t maxGroups = 250);

} // namespace dg::viz
