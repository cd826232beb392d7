// SPDX-License-Identifier: Apache-2.0
// Calls Graphviz' dot in process. An edge between backward groups is given to it the wrong way round, which is what
// puts the backward pass beside the forward pass instead of below it; the path is turned again afterwards.
#include "tools/dgviz/GraphLayout.h"

#include <graphviz/gvc.h>

#include <algorithm>
#include <memory>

namespace dg::viz {

using plan::Phase;

namespace {

constexpr double boxWidth = 200, boxHeight = 46, pointsPerInch = 72, margin = 16;

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

/// How an edge takes part in the layout.
struct EdgeRole {
  bool turned = false, shapesRanks = true;
  int minimumLength = 1;
};

EdgeRole roleOf(const OpGroup &from, const OpGroup &to) {
  if (from.phase == Phase::backward && to.phase == Phase::backward)
    return {true, true, 1};
  if (from.phase == Phase::forward && to.phase == Phase::backward)
    return {false, false, 1};
  if (to.phase == Phase::update && from.phase != Phase::update)
    return {false, true, 0};
  return {false, true, 1};
}

/// Lines have no arrow heads in the layout (the page adds them), so a path is one point and triples of Bézier points.
std::string pathOf(const splines *spline, double height, bool turned) {
  if (!spline || spline->size == 0)
    return "";
  std::vector<pointf> points(spline->list[0].list, spline->list[0].list + spline->list[0].size);
  if (turned)
    std::reverse(points.begin(), points.end());
  std::string path;
  for (size_t i = 0; i < points.size(); ++i)
    path += fmt::format("{}{:.1f} {:.1f}",
                        i == 0       ? "M"
                        : i % 3 == 1 ? "C"
                                     : " ",
                        points[i].x + margin, height - points[i].y + margin);
  return path;
}

/// Groups that dot keeps in one column: the forward pass, and the gradients that are handed on from layer to layer.
std::string columnOf(const OpGraph &graph, uint32_t group) {
  Phase phase = graph.groups[group].phase;
  if (phase == Phase::forward)
    return "forward";
  bool handsOn = std::any_of(graph.edges.begin(), graph.edges.end(), [&](const GroupEdge &edge) {
    return edge.from == group && graph.groups[edge.to].phase == Phase::backward;
  });
  return phase == Phase::backward && handsOn ? "backward" : "";
}

/// dot without a line to a backward group would put it on the first rank: the last forward group pulls the first
/// backward group down beside it.
bool startsBackward(const OpGraph &graph, uint32_t group) {
  return graph.groups[group].phase == Phase::backward &&
         std::none_of(graph.edges.begin(), graph.edges.end(), [&](const GroupEdge &edge) {
           return edge.to == group && graph.groups[edge.from].phase == Phase::backward;
         });
}

} // namespace

Result<GraphLayout> layOut(const OpGraph &graph) {
  GraphLayout layout;
  layout.boxWidth = boxWidth;
  layout.boxHeight = boxHeight;
  layout.boxes.resize(graph.groups.size());
  layout.paths.resize(graph.edges.size());
  if (graph.groups.empty())
    return layout;

  std::unique_ptr<GVC_t, ContextDeleter> context(gvContext());
  std::unique_ptr<Agraph_t, GraphDeleter> drawing(agopen(text("plan"), Agdirected, nullptr));
  if (!context || !drawing)
    return Status::error(ErrorKind::runFailed, "Graphviz could not be started; is libgvc6 installed whole?");
  Agraph_t *g = drawing.get();
  set(g, "rankdir", "TB");
  set(g, "nodesep", "0.28");
  set(g, "ranksep", "0.42");
  set(g, "splines", graph.edges.size() > 1200 ? "line" : "spline");
  set(g, "nslimit", "4");
  std::vector<Agnode_t *> nodes;
  for (size_t i = 0; i < graph.groups.size(); ++i) {
    Agnode_t *node = agnode(g, text(fmt::format("n{}", i).c_str()), 1);
    set(node, "shape", "box");
    set(node, "label", "");
    set(node, "fixedsize", "true");
    set(node, "width", fmt::format("{:.4f}", boxWidth / pointsPerInch));
    set(node, "height", fmt::format("{:.4f}", boxHeight / pointsPerInch));
    if (std::string column = columnOf(graph, uint32_t(i)); !column.empty())
      set(node, "group", column);
    nodes.push_back(node);
  }
  std::vector<Agedge_t *> edges;
  for (size_t i = 0; i < graph.edges.size(); ++i) {
    const GroupEdge &edge = graph.edges[i];
    EdgeRole role = roleOf(graph.groups[edge.from], graph.groups[edge.to]);
    // The first backward group hangs below what it reads; otherwise saved activations do not shape the picture.
    if (!role.shapesRanks && startsBackward(graph, edge.to))
      role = {false, true, 0};
    Agedge_t *line = agedge(g, nodes[role.turned ? edge.to : edge.from], nodes[role.turned ? edge.from : edge.to],
                            text(fmt::format("e{}", i).c_str()), 1);
    set(line, "minlen", std::to_string(role.minimumLength));
    set(line, "constraint", role.shapesRanks ? "true" : "false");
    set(line, "weight", role.shapesRanks ? "4" : "0");
    set(line, "dir", "none");
    edges.push_back(line);
  }
  if (gvLayout(context.get(), g, "dot") != 0)
    return Status::error(ErrorKind::runFailed, "Graphviz could not lay out a graph of {} boxes and {} lines",
                         graph.groups.size(), graph.edges.size());

  boxf bounds = GD_bb(g);
  layout.width = bounds.UR.x + 2 * margin;
  layout.height = bounds.UR.y + 2 * margin;
  for (size_t i = 0; i < nodes.size(); ++i)
    layout.boxes[i] = {ND_coord(nodes[i]).x + margin, bounds.UR.y - ND_coord(nodes[i]).y + margin};
  for (size_t i = 0; i < edges.size(); ++i) {
    const GroupEdge &edge = graph.edges[i];
    layout.paths[i] =
        pathOf(ED_spl(edges[i]), bounds.UR.y, roleOf(graph.groups[edge.from], graph.groups[edge.to]).turned);
  }
  gvFreeLayout(context.get(), g);
  return layout;
}

} // namespace dg::viz

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// Graphviz keeps 4 kB for each context that it has freed; the leak check is for our own.
extern "C" const char *__lsan_default_suppressions() { return "leak:libgvc"; }
#endif
#endif
