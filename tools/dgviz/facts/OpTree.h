// SPDX-License-Identifier: Apache-2.0
// A flow graph nested by the names of its ops, so that one level of it fits a page and a reader opens what interests
// him: "b0_attn/matmul" is the op matmul in attn in b0.
#pragma once

#include "tools/dgviz/FlowGraph.h"

namespace dg::viz {

/// A line between two children of one box.
struct LevelEdge {
  uint32_t from = 0, to = 0; ///< positions in the children of the box
  uint64_t bytes = 0;
  uint32_t values = 0; ///< how many lines between ops it stands for
  std::string route;   ///< of the ops' lines, joined; see FlowEdge
};

/// A box: an op (no children) or a group.
struct TreeNode {
  std::string title;
  plan::Phase phase = plan::Phase::forward;
  uint32_t stage = 0;
  uint32_t flowNode = plan::noId; ///< an op: its index in the flow graph
  uint32_t parent = plan::noId;
  std::vector<uint32_t> children;
  std::vector<LevelEdge> edges;
};

struct OpTree {
  std::vector<TreeNode> nodes; ///< the first is the whole program
};

/// Names are cut at '.', '/', and at '_' after a digit; a part that is a number stays with what it numbers. All ops of
/// a box have one phase and one stage, but for the outermost. Boxes with one child are replaced by it. A level with
/// more than `maxBoxes` is cut into runs of neighbours ("b0 … b31"). A box whose small values go to many others has no
/// lines for them. O(ops · depth).
OpTree nest(const FlowGraph &graph, size_t maxBoxes = 200);

} // namespace dg::viz
