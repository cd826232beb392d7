// SPDX-License-Identifier: Apache-2.0
// Where the boxes and lines of an OpGraph go. Graphviz stays behind this file.
#pragma once

#include "tools/dgviz/OpGraph.h"

#include <string>
#include <vector>

namespace dg::viz {

struct Box {
  double x = 0, y = 0; ///< centre
};

/// In pixels, y downwards.
struct GraphLayout {
  double width = 0, height = 0, boxWidth = 0, boxHeight = 0;
  std::vector<Box> boxes;         ///< per group
  std::vector<std::string> paths; ///< per edge, as SVG path data
};

/// Forward from the top down, backward beside it from the bottom up, updates beside their gradients. Takes about a
/// second for 250 groups. Not thread-safe: Graphviz has global state.
Result<GraphLayout> layOut(const OpGraph &graph);

} // namespace dg::viz
