// SPDX-License-Identifier: Apache-2.0
// Where the boxes and lines of one level of an OpTree go. Graphviz stays behind this file. One level at a time, because
// dot takes seconds for some hundred boxes and never ends with thousands.
#pragma once

#include "tools/dgviz/facts/OpTree.h"

#include <map>
#include <string>
#include <vector>

namespace dg::viz {

struct Point {
  double x = 0, y = 0;
};

/// In pixels, y downwards.
struct LevelLayout {
  double width = 0, height = 0;
  std::vector<Point> boxes;              ///< per child its centre
  std::vector<std::vector<Point>> lines; ///< per edge: a point, then triples of Bézier points
};

inline constexpr double boxWidth = 208, boxHeight = 48;

/// Lays out levels, each shape once: equal layers of a model share their picture. Not thread-safe: Graphviz has global
/// state.
class LayoutStore {
public:
  /// The number of the layout of the level inside `node`. Forward runs from the top down, backward beside it from the
  /// bottom up, updates beside their gradients. Takes about a second for 250 boxes.
  Result<uint32_t> layOut(const OpTree &tree, const TreeNode &node);
  const std::vector<LevelLayout> &layouts() const { return known; }

private:
  std::vector<LevelLayout> known;
  std::map<std::string, uint32_t> byShape;
};

} // namespace dg::viz
