// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/facts/OpTree.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace dg::viz {

using namespace dg::plan;

namespace {

/// A number that half of the model reads (how many samples a batch norm has, a scale) has more lines than all tensors
/// together. From so many on they are left to the op's panel: the picture is of what flows.
constexpr uint64_t smallBytes = 64;
constexpr uint32_t maxSmallLines = 8;
bool isSmall(uint64_t bytes) { return bytes > 0 && bytes <= smallBytes; }

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Where the parts of a name end: "blocks.1.attn/matmul" at "blocks.1", "blocks.1.attn" and the whole.
std::vector<size_t> partEnds(const std::string &name) {
  std::vector<size_t> ends;
  for (size_t i = 1; i < name.size(); ++i) {
    bool separates = name[i] == '.' || name[i] == '/' || (name[i] == '_' && isDigit(name[i - 1]));
    if (!separates)
      continue;
    // "blocks.1" and "layer1_0" number their block: the number stays with it.
    size_t digits = i + 1;
    while (digits < name.size() && isDigit(name[digits]))
      ++digits;
    bool numberFollows = digits > i + 1 && (digits == name.size() || !std::isalnum(uint8_t(name[digits])));
    if (!numberFollows)
      ends.push_back(i);
  }
  ends.push_back(name.size());
  return ends;
}

class Nesting {
public:
  Nesting(const FlowGraph &graph, size_t maxBoxes) : graph(graph), maxBoxes(maxBoxes) {}

  OpTree build() {
    tree.nodes.emplace_back();
    spans.push_back({0, 0, 0});
    for (uint32_t i = 0; i < graph.nodes.size(); ++i)
      insert(i);
    collapse();
    for (uint32_t i = 0; i < tree.nodes.size(); ++i) // runs that are added are short enough themselves
      cutIntoRuns(i);
    renumber();
    connect();
    return std::move(tree);
  }

private:
  /// The part of an op's name that is a box's title.
  struct Span {
    uint32_t flowNode;
    size_t begin, end;
  };

  uint32_t add(uint32_t parent, std::string title, const FlowNode &like, uint32_t flowNode, Span span) {
    auto id = uint32_t(tree.nodes.size());
    tree.nodes.push_back({std::move(title), like.phase, like.stage, flowNode, parent, {}, {}});
    spans.push_back(span);
    tree.nodes[parent].children.push_back(id);
    return id;
  }

  void insert(uint32_t flowNode) {
    const FlowNode &op = graph.nodes[flowNode];
    std::vector<size_t> ends = partEnds(op.name);
    uint32_t at = 0;
    size_t begin = 0;
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
      std::string title = op.name.substr(begin, ends[i] - begin);
      auto [found, isNew] = groups.try_emplace({at, op.phase, op.stage, title}, uint32_t(0));
      if (isNew)
        found->second = add(at, title, op, noId, {flowNode, begin, ends[i]});
      at = found->second;
      begin = ends[i] + 1;
    }
    add(at, op.name.substr(begin), op, flowNode, {flowNode, begin, op.name.size()});
  }

  /// A box with one child says nothing that the child does not: the child takes its place, with both titles.
  void collapse() {
    for (auto id = uint32_t(tree.nodes.size() - 1); id > 0; --id) {
      TreeNode &node = tree.nodes[id];
      if (node.children.size() != 1)
        continue;
      TreeNode &child = tree.nodes[node.children[0]];
      spans[id].end = spans[node.children[0]].end;
      node.title = graph.nodes[spans[id].flowNode].name.substr(spans[id].begin, spans[id].end - spans[id].begin);
      node.flowNode = child.flowNode;
      std::vector<uint32_t> grandchildren = std::move(child.children);
      child.parent = noId;
      for (uint32_t grandchild : grandchildren)
        tree.nodes[grandchild].parent = id;
      node.children = std::move(grandchildren);
    }
  }

  void cutIntoRuns(uint32_t id) {
    constexpr size_t maxRuns = 64;
    while (tree.nodes[id].children.size() > maxBoxes) {
      std::vector<uint32_t> children = std::move(tree.nodes[id].children);
      tree.nodes[id].children.clear();
      size_t length = std::clamp(children.size() / maxRuns + 1, size_t(2), maxBoxes);
      for (size_t begin = 0; begin < children.size();) {
        const TreeNode first = tree.nodes[children[begin]];
        size_t end = begin + 1;
        while (end < children.size() && end - begin < length && tree.nodes[children[end]].phase == first.phase &&
               tree.nodes[children[end]].stage == first.stage)
          ++end;
        if (end - begin == 1) {
          tree.nodes[id].children.push_back(children[begin]);
        } else {
          uint32_t run = add(id, first.title + " … " + tree.nodes[children[end - 1]].title,
                             {"", first.phase, first.stage, 0}, noId, {0, 0, 0});
          tree.nodes[run].children.assign(children.begin() + long(begin), children.begin() + long(end));
          for (uint32_t child : tree.nodes[run].children)
            tree.nodes[child].parent = run;
        }
        begin = end;
      }
      if (tree.nodes[id].children.size() == children.size())
        break; // stages and phases alternate: no run is longer than one
    }
  }

  /// Leaves out what collapse emptied; parents come before their children.
  void renumber() {
    std::vector<TreeNode> kept;
    std::vector<std::pair<uint32_t, uint32_t>> waiting = {{0, noId}}; // old id, new parent
    for (size_t i = 0; i < waiting.size(); ++i) {
      auto [old, parent] = waiting[i];
      auto id = uint32_t(kept.size());
      kept.push_back(std::move(tree.nodes[old]));
      kept[id].parent = parent;
      if (parent != noId)
        kept[parent].children.push_back(id);
      for (uint32_t child : std::exchange(kept[id].children, {}))
        waiting.push_back({child, id});
    }
    tree.nodes = std::move(kept);
  }

  /// Each line of the flow graph is drawn where its ends part: in the innermost box that holds both.
  void connect() {
    std::vector<uint32_t> leafOf(graph.nodes.size()), depth(tree.nodes.size()), position(tree.nodes.size());
    for (uint32_t id = 0; id < tree.nodes.size(); ++id) {
      const TreeNode &node = tree.nodes[id];
      if (node.flowNode != noId)
        leafOf[node.flowNode] = id;
      for (uint32_t i = 0; i < node.children.size(); ++i) {
        depth[node.children[i]] = depth[id] + 1;
        position[node.children[i]] = i;
      }
    }
    struct Line {
      uint64_t bytes = 0;
      uint32_t values = 0;
      std::set<std::string> routes;
    };
    std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Line> lines;
    for (const FlowEdge &edge : graph.edges) {
      uint32_t a = leafOf[edge.from], b = leafOf[edge.to];
      while (tree.nodes[a].parent != tree.nodes[b].parent) {
        uint32_t &deeper = depth[a] >= depth[b] ? a : b;
        deeper = tree.nodes[deeper].parent;
      }
      if (a == b)
        continue;
      Line &line = lines[{tree.nodes[a].parent, position[a], position[b]}];
      line.bytes += edge.bytes;
      ++line.values;
      if (!edge.route.empty())
        line.routes.insert(edge.route);
    }
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> numSmall; // by box and source
    for (const auto &[key, line] : lines)
      numSmall[{std::get<0>(key), std::get<1>(key)}] += isSmall(line.bytes);
    for (const auto &[key, line] : lines) {
      const auto &[box, from, to] = key;
      if (isSmall(line.bytes) && numSmall[{box, from}] > maxSmallLines)
        continue;
      std::string route;
      for (const std::string &part : line.routes)
        route += (route.empty() ? "" : ", ") + part;
      tree.nodes[box].edges.push_back({from, to, line.bytes, line.values, route});
    }
  }

  const FlowGraph &graph;
  const size_t maxBoxes;
  OpTree tree;
  std::vector<Span> spans;                                                       ///< per box
  std::map<std::tuple<uint32_t, Phase, uint32_t, std::string>, uint32_t> groups; ///< by box, phase, stage and title
};

} // namespace

OpTree nest(const FlowGraph &graph, size_t maxBoxes) { return Nesting(graph, maxBoxes).build(); }

} // namespace dg::viz
