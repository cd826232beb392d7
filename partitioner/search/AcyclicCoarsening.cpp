// SPDX-License-Identifier: Apache-2.0
// Three rules, one to a round, because contractions that are safe by different rules may close a cycle together:
//
//   fan-in    u → v where v is u's only successor. All that leaves such a pair leaves from v, so a cycle of pairs would
//             be a cycle of their v's.
//   fan-out   the same backwards.
//   band      u → v on neighbouring levels 2k, 2k+1 (or 2k+1, 2k+2), the level of a node being the longest way to it.
//   Edges
//             between bands go upwards, so a cycle would lie in one band, and a node that is alone in it has only edges
//             out or only edges in. A pair is made only if, of the pairs made before it, none precedes it or none
//             succeeds it: then it closes no cycle.
//
// The criterion of levels is that of Herrmann, Özkaya, Uçar, Kaya and Çatalyürek ("Multilevel Algorithms for Acyclic
// Partitioning of Directed Acyclic Graphs", 2019).
#include "partitioner/search/AcyclicCoarsening.h"

#include <algorithm>
#include <numeric>

namespace dg::partitioner {

namespace {

constexpr uint32_t alone = UINT32_MAX;
using Arc = WeightedDag::Arc;

class Matching {
public:
  Matching(const WeightedDag &dag, const std::vector<uint32_t> *parts, uint64_t maxWeight, std::mt19937_64 &random)
      : dag(dag), parts(parts), maxWeight(maxWeight), visits(dag.numNodes()) {
    std::iota(visits.begin(), visits.end(), 0u);
    std::shuffle(visits.begin(), visits.end(), random);
  }

  /// Pairs of each rule; the first rule that shrinks the graph enough.
  std::optional<CoarseLevel> run() {
    matchFans(true);
    if (!isEnough())
      matchFans(false);
    for (uint32_t shift = 0; shift < 2 && !isEnough(); ++shift)
      matchBands(shift);
    if (!isEnough())
      return std::nullopt;
    return contract();
  }

private:
  bool isEnough() const { return numPairs * 20 >= dag.numNodes(); }

  void clear() {
    partner.assign(dag.numNodes(), alone);
    numPairs = 0;
  }

  bool mayJoin(uint32_t u, uint32_t v) const {
    return partner[v] == alone && dag.weight(u) + dag.weight(v) <= maxWeight && (!parts || (*parts)[u] == (*parts)[v]);
  }

  void join(uint32_t u, uint32_t v) {
    partner[u] = v;
    partner[v] = u;
    ++numPairs;
  }

  /// The heaviest edge to a node that may be joined; of equal ones the lighter node.
  template <typename Allows> uint32_t bestOf(uint32_t node, std::span<const Arc> arcs, Allows allows) const {
    const Arc *best = nullptr;
    for (const Arc &arc : arcs)
      if (mayJoin(node, arc.node) && allows(arc.node) &&
          (!best || arc.weight > best->weight ||
           (arc.weight == best->weight && dag.weight(arc.node) < dag.weight(best->node))))
        best = &arc;
    return best ? best->node : alone;
  }

  void matchFans(bool isFanIn) {
    clear();
    for (uint32_t node : visits) {
      if (partner[node] != alone)
        continue;
      uint32_t other = bestOf(node, isFanIn ? dag.ins(node) : dag.outs(node), [&](uint32_t candidate) {
        return (isFanIn ? dag.outs(candidate) : dag.ins(candidate)).size() == 1;
      });
      if (other != alone)
        join(node, other);
    }
  }

  void matchBands(uint32_t shift) {
    clear();
    std::vector<uint32_t> band = *longestWays(dag.numNodes(), dag.directedEdges()); // first the level
    for (uint32_t &b : band)
      b = (b + shift) / 2;
    // A pair's ends differ by a level, and edges inside of a band go from its lower to its upper level.
    auto meetsPair = [&](std::span<const Arc> arcs, uint32_t own, uint32_t except) {
      return std::any_of(arcs.begin(), arcs.end(), [&](const Arc &arc) {
        return arc.node != except && band[arc.node] == own && partner[arc.node] != alone;
      });
    };
    for (uint32_t node : visits) {
      if (partner[node] != alone)
        continue;
      uint32_t other = bestOf(node, dag.outs(node), [&](uint32_t candidate) {
        return band[candidate] == band[node] &&
               !(meetsPair(dag.outs(node), band[node], candidate) && meetsPair(dag.ins(candidate), band[node], node));
      });
      if (other != alone)
        join(node, other);
    }
  }

  CoarseLevel contract() const {
    CoarseLevel level;
    level.nodeOf.assign(dag.numNodes(), alone);
    std::vector<uint64_t> weights;
    for (uint32_t v = 0; v < dag.numNodes(); ++v) {
      if (partner[v] != alone && partner[v] < v) {
        level.nodeOf[v] = level.nodeOf[partner[v]];
        weights[level.nodeOf[v]] += dag.weight(v);
        continue;
      }
      level.nodeOf[v] = uint32_t(weights.size());
      weights.push_back(dag.weight(v));
    }
    std::vector<WeightedDag::Edge> edges;
    for (const WeightedDag::Edge &edge : dag.edges())
      edges.push_back({level.nodeOf[edge.from], level.nodeOf[edge.to], edge.weight});
    level.dag = WeightedDag(std::move(weights), std::move(edges));
    return level;
  }

  const WeightedDag &dag;
  const std::vector<uint32_t> *parts;
  uint64_t maxWeight;
  std::vector<uint32_t> visits, partner;
  size_t numPairs = 0;
};

} // namespace

std::optional<CoarseLevel> coarsen(const WeightedDag &dag, const std::vector<uint32_t> *parts, uint64_t maxWeight,
                                   std::mt19937_64 &random) {
  return Matching(dag, parts, maxWeight, random).run();
}

} // namespace dg::partitioner
