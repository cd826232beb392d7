// SPDX-License-Identifier: Apache-2.0
// Calls Graphviz' dot in process. An edge between backward boxes is given to it the wrong way round, which is what puts
// the backward pass beside the forward pass instead of below it; the line is turned again afterwards.
#include "tools/dgviz/GraphLayout.h"

#include <graphviz/gvc.h>

#include <algorithm>
#include <memory>

namespace dg::viz {

using plan::Phase;

namespace {

constexpr double pointsPerInch = 72, margin = 12;

struct GraphDeleter {
  void operator()(Agraph_t *graph) const { agclose(graph); }
};
struct ContextDeleter {
  void operator()(GVC_t *context) const { gvFreeContext(context); }
};

// Graphviz takes char * where it means const char *.
char *text(const char *literal) { return const_cast<char *>(literal); }

void set(void *object, const char *name, const std::string &value) {
  agsafeset(object, text(name), text(value.c_str()), text(""));
}

/// What decides a layout: the phases of the boxes and the lines between them.
struct Level {
  std::vector<Phase> phases;
  std::vector<std::pair<uint32_t, uint32_t>> edges;

  Level(const OpTree &tree, const TreeNode &node) {
    for (uint32_t child : node.children)
      phases.push_back(tree.nodes[child].phase);
    for (const LevelEdge &edge : node.edges)
      edges.push_back({edge.from, edge.to});
  }

  std::string shape() const {
    std::string key;
    for (Phase phase : phases)
      key += char('0' + int(phase));
    for (auto [from, to] : edges)
      key += fmt::format(" {}>{}", from, to);
    return key;
  }

  bool isBackwardEdge(size_t edge) const {
    return phases[edges[edge].first] == Phase::backward && phases[edges[edge].second] == Phase::backward;
  }
};

/// How an edge takes part in the layout.
struct EdgeRole {
  bool turned = false, shapesRanks = true;
  int minimumLength = 1;
};

/// What a box has, so that dot can be told where it belongs.
struct BoxFacts {
  bool handsGradientsOn = false, takesGradients = false;
};

EdgeRole roleOf(const Level &level, const std::vector<BoxFacts> &facts, size_t edge) {
  auto [from, to] = level.edges[edge];
  if (level.isBackwardEdge(edge))
    return {true, true, 1};
  // Activations that are kept for the backward pass do not shape the picture, but the first backward box hangs beside
  // what it reads: without a line dot would put it on the first rank.
  if (level.phases[from] == Phase::forward && level.phases[to] == Phase::backward)
    return facts[to].takesGradients ? EdgeRole{false, false, 1} : EdgeRole{false, true, 0};
  if (level.phases[to] == Phase::update && level.phases[from] != Phase::update)
    return {false, true, 0};
  return {false, true, 1};
}

/// Boxes that dot keeps in one column: the forward pass, and the gradients that are handed on from layer to layer.
const char *columnOf(Phase phase, const BoxFacts &facts) {
  if (phase == Phase::forward)
    return "forward";
  return phase == Phase::backward && facts.handsGradientsOn ? "backward" : "";
}

std::vector<Point> lineOf(const splines *spline, double height, bool turned) {
  std::vector<Point> points;
  if (!spline || spline->size == 0)
    return points;
  for (size_t i = 0; i < size_t(spline->list[0].size); ++i)
    points.push_back({spline->list[0].list[i].x + margin, height - spline->list[0].list[i].y + margin});
  if (turned)
    std::reverse(points.begin(), points.end());
  return points;
}

Result<LevelLayout> runDot(const Level &level) {
  LevelLayout layout;
  layout.boxes.resize(level.phases.size());
  layout.lines.resize(level.edges.size());
  if (level.phases.empty())
    return layout;
  std::vector<BoxFacts> facts(level.phases.size());
  for (size_t i = 0; i < level.edges.size(); ++i)
    if (level.isBackwardEdge(i)) {
      facts[level.edges[i].first].handsGradientsOn = true;
      facts[level.edges[i].second].takesGradients = true;
    }

  std::unique_ptr<GVC_t, ContextDeleter> context(gvContext());
  std::unique_ptr<Agraph_t, GraphDeleter> drawing(agopen(text("level"), Agdirected, nullptr));
  if (!context || !drawing)
    return Status::error(ErrorKind::runFailed, "Graphviz could not be started; is libgvc6 installed whole?");
  Agraph_t *g = drawing.get();
  set(g, "rankdir", "TB");
  set(g, "nodesep", "0.3");
  set(g, "ranksep", "0.42");
  set(g, "splines", level.edges.size() > 1200 ? "line" : "spline");
  set(g, "nslimit", "4");
  std::vector<Agnode_t *> nodes;
  for (size_t i = 0; i < level.phases.size(); ++i) {
    Agnode_t *node = agnode(g, text(fmt::format("n{}", i).c_str()), 1);
    set(node, "shape", "box");
    set(node, "label", "");
    set(node, "fixedsize", "true");
    set(node, "width", fmt::format("{:.4f}", boxWidth / pointsPerInch));
    set(node, "height", fmt::format("{:.4f}", boxHeight / pointsPerInch));
    if (const char *column = columnOf(level.phases[i], facts[i]); *column)
      set(node, "group", column);
    nodes.push_back(node);
  }
  std::vector<Agedge_t *> edges;
  for (size_t i = 0; i < level.edges.size(); ++i) {
    auto [from, to] = level.edges[i];
    EdgeRole role = roleOf(level, facts, i);
    Agedge_t *line = agedge(g, nodes[role.turned ? to : from], nodes[role.turned ? from : to],
                            text(fmt::format("e{}", i).c_str()), 1);
    set(line, "minlen", std::to_string(role.minimumLength));
    set(line, "constraint", role.shapesRanks ? "true" : "false");
    set(line, "weight", role.shapesRanks ? "4" : "0");
    set(line, "dir", "none");
    edges.push_back(line);
  }
  if (gvLayout(context.get(), g, "dot") != 0)
    return Status::error(ErrorKind::runFailed, "Graphviz could not lay out a level of {} boxes and {} lines",
                         level.phases.size(), level.edges.size());
  boxf bounds = GD_bb(g);
  layout.width = bounds.UR.x + 2 * margin;
  layout.height = bounds.UR.y + 2 * margin;
  for (size_t i = 0; i < nodes.size(); ++i)
    layout.boxes[i] = {ND_coord(nodes[i]).x + margin, bounds.UR.y - ND_coord(nodes[i]).y + margin};
  for (size_t i = 0; i < edges.size(); ++i)
    layout.lines[i] = lineOf(ED_spl(edges[i]), bounds.UR.y, level.isBackwardEdge(i));
  gvFreeLayout(context.get(), g);
  return layout;
}

} // namespace

Result<uint32_t> LayoutStore::layOut(const OpTree &tree, const TreeNode &node) {
  Level level(tree, node);
  auto [found, isNew] = byShape.try_emplace(level.shape(), uint32_t(known.size()));
  if (isNew) {
    Result<LevelLayout> layout = runDot(level);
    if (!layout)
      return layout.status();
    known.push_back(std::move(*layout));
  }
  return found->second;
}

} // namespace dg::viz

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// Graphviz keeps 4 kB for each context that it has freed; the leak check is for our own.
// NOLINTNEXTLINE(bugprone-reserved-identifier, readability-identifier-naming): the sanitizer's name
extern "C" const char *__lsan_default_suppressions() { return "leak:libgvc"; }
#endif
#endif
