// SPDX-License-Identifier: Apache-2.0
// A node may stand in any part from the last of its predecessors to the first of its successors, and only those two are
// worth a move: every other part has none of its neighbours. In a pass each node moves at most once, the best move
// first whether it helps or not, and the best state of the pass is kept. O(E log E) for a pass over few parts.
#include "partitioner/search/AcyclicRefinement.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>

namespace dg::partitioner {

namespace {

using Arc = WeightedDag::Arc;
constexpr int maxPasses = 12;
/// Moves in a row that do not help, before a pass ends.
constexpr size_t maxIdleMoves = 300;

class Refinement {
public:
  Refinement(const WeightedDag &dag, const PartLimits &limits, std::vector<uint32_t> &parts)
      : dag(dag), limits(limits), parts(parts), weights(partWeights(dag, parts, limits.numParts)),
        counts(limits.numParts), stamp(dag.numNodes()), isMoved(dag.numNodes()) {
    for (uint32_t part : parts)
      ++counts[part];
  }

  void run() {
    for (int pass = 0; pass < maxPasses && runPass(); ++pass) {
    }
  }

private:
  struct Move {
    int64_t gain;
    uint32_t node, to, stamp;
    bool operator<(const Move &other) const { // the largest gain on top, of equal ones the first node
      return std::tie(gain, other.node, other.to) < std::tie(other.gain, node, to);
    }
  };

  uint64_t excess() const {
    uint64_t sum = 0;
    for (uint64_t weight : weights)
      sum += weight > limits.maxWeight ? weight - limits.maxWeight : 0;
    return sum;
  }

  /// First and last part that the node's neighbours leave it.
  std::pair<uint32_t, uint32_t> rangeOf(uint32_t node) const {
    uint32_t first = 0, last = limits.numParts - 1;
    for (const Arc &arc : dag.ins(node))
      first = std::max(first, parts[arc.node]);
    for (const Arc &arc : dag.outs(node))
      last = std::min(last, parts[arc.node]);
    return {first, last};
  }

  void offer(uint32_t node) {
    if (isMoved[node])
      return;
    ++stamp[node];
    const uint32_t own = parts[node];
    auto [first, last] = rangeOf(node);
    if (first == last)
      return;
    int64_t inside = 0, toFirst = 0, toLast = 0;
    for (const Arc &arc : dag.ins(node)) {
      inside += parts[arc.node] == own ? int64_t(arc.weight) : 0;
      toFirst += parts[arc.node] == first ? int64_t(arc.weight) : 0;
    }
    for (const Arc &arc : dag.outs(node)) {
      inside += parts[arc.node] == own ? int64_t(arc.weight) : 0;
      toLast += parts[arc.node] == last ? int64_t(arc.weight) : 0;
    }
    if (own != first)
      moves.push({toFirst - inside, node, first, stamp[node]});
    if (own != last)
      moves.push({toLast - inside, node, last, stamp[node]});
    // Parts beside one's own help where weight has to go elsewhere.
    if (weights[own] > limits.maxWeight) {
      if (own > first + 1)
        moves.push({-inside, node, own - 1, stamp[node]});
      if (own + 1 < last)
        moves.push({-inside, node, own + 1, stamp[node]});
    }
  }

  bool isAllowed(const Move &move) const {
    const uint32_t from = parts[move.node];
    if (counts[from] == 1)
      return false;
    const uint64_t after = weights[move.to] + dag.weight(move.node);
    return after <= limits.maxWeight || after < weights[from];
  }

  void apply(uint32_t node, uint32_t to) {
    weights[parts[node]] -= dag.weight(node);
    --counts[parts[node]];
    parts[node] = to;
    weights[to] += dag.weight(node);
    ++counts[to];
  }

  /// True where the state got better.
  bool runPass() {
    moves = {};
    std::fill(isMoved.begin(), isMoved.end(), 0);
    for (uint32_t node = 0; node < dag.numNodes(); ++node)
      offer(node);
    std::vector<std::pair<uint32_t, uint32_t>> done; // node, and the part that it left
    const std::pair<uint64_t, int64_t> start{excess(), 0};
    std::pair<uint64_t, int64_t> best = start; // excess, and what the cut has grown
    size_t numKept = 0;
    int64_t grown = 0;
    while (!moves.empty() && done.size() < numKept + maxIdleMoves) {
      Move move = moves.top();
      moves.pop();
      if (move.stamp != stamp[move.node] || isMoved[move.node] || !isAllowed(move))
        continue;
      done.push_back({move.node, parts[move.node]});
      apply(move.node, move.to);
      isMoved[move.node] = 1;
      grown -= move.gain;
      if (std::pair now{excess(), grown}; now < best) {
        best = now;
        numKept = done.size();
      }
      for (const Arc &arc : dag.ins(move.node))
        offer(arc.node);
      for (const Arc &arc : dag.outs(move.node))
        offer(arc.node);
    }
    for (; done.size() > numKept; done.pop_back())
      apply(done.back().first, done.back().second);
    return best < start;
  }

  const WeightedDag &dag;
  const PartLimits limits;
  std::vector<uint32_t> &parts;
  std::vector<uint64_t> weights;
  std::vector<uint32_t> counts, stamp;
  std::vector<uint8_t> isMoved;
  std::priority_queue<Move> moves;
};

} // namespace

void refine(const WeightedDag &dag, const PartLimits &limits, std::vector<uint32_t> &parts) {
  Refinement(dag, limits, parts).run();
}

void renumber(const WeightedDag &dag, uint32_t numParts, std::vector<uint32_t> &parts, std::mt19937_64 &random) {
  std::vector<WeightedDag::Edge> edges;
  for (const WeightedDag::Edge &edge : dag.edges())
    edges.push_back({parts[edge.from], parts[edge.to]});
  std::vector<uint32_t> ready, number(numParts);
  const std::vector<uint32_t> order = WeightedDag(std::vector<uint64_t>(numParts), std::move(edges))
                                          .topologicalOrder([&](uint32_t part, size_t) { ready.push_back(part); },
                                                            [&] {
                                                              std::swap(ready[random() % ready.size()], ready.back());
                                                              uint32_t part = ready.back();
                                                              ready.pop_back();
                                                              return part;
                                                            });
  for (uint32_t i = 0; i < numParts; ++i)
    number[order[i]] = i;
  for (uint32_t &part : parts)
    part = number[part];
}

} // namespace dg::partitioner
