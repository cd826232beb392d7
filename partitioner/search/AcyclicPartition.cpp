// SPDX-License-Identifier: Apache-2.0
// The driver: coarsen, cut, refine, and again with other contractions; the best partition wins.
#include "partitioner/search/AcyclicPartition.h"

#include "partitioner/search/AcyclicCoarsening.h"
#include "partitioner/search/AcyclicRefinement.h"
#include "partitioner/search/OrderedCuts.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <tuple>

namespace dg::partitioner {

namespace {

/// Graphs up to this size are also cut without being contracted.
constexpr uint32_t maxUncontracted = 1500;
constexpr uint32_t maxManyTries = 20'000;
/// Steps of the exact cuts of all orders together.
constexpr double maxCutSteps = 3e7;
constexpr uint32_t maxOrders = 100;
/// Rounds of contraction within parts and refinement after the first partition.
constexpr int maxCycles = 3;

class Partitioner {
public:
  Partitioner(const WeightedDag &dag, const PartLimits &limits, uint64_t seed)
      : dag(dag), limits(limits), random(seed),
        maxNodeWeight(std::max<uint64_t>(1, dag.totalWeight() / (uint64_t(limits.numParts) * 6))) {}

  std::vector<uint32_t> run(bool isContracted) {
    const uint32_t enough = isContracted ? std::max<uint32_t>(200, 20 * limits.numParts) : dag.numNodes();
    std::vector<CoarseLevel> levels = contract(nullptr, enough);
    std::vector<uint32_t> parts = cut(levels.empty() ? dag : levels.back().dag);
    unfold(levels, parts);
    for (int cycle = 0; cycle < maxCycles; ++cycle) {
      std::vector<uint32_t> changed = parts;
      renumber(dag, limits.numParts, changed, random);
      std::vector<CoarseLevel> own = contract(&changed, enough / 2);
      for (const CoarseLevel &level : own) {
        std::vector<uint32_t> coarse(level.dag.numNodes());
        for (size_t v = 0; v < level.nodeOf.size(); ++v)
          coarse[level.nodeOf[v]] = changed[v];
        changed = std::move(coarse);
      }
      unfold(own, changed);
      if (cost(changed) <= cost(parts))
        parts = std::move(changed);
    }
    return parts;
  }

  /// Weight above the limit, then the cut.
  std::pair<uint64_t, uint64_t> cost(const std::vector<uint32_t> &parts) const {
    uint64_t excess = 0;
    for (uint64_t weight : partWeights(dag, parts, limits.numParts))
      excess += weight > limits.maxWeight ? weight - limits.maxWeight : 0;
    return {excess, cutWeight(dag, parts)};
  }

private:
  std::vector<CoarseLevel> contract(const std::vector<uint32_t> *parts, uint32_t enough) {
    std::vector<CoarseLevel> levels;
    std::vector<uint32_t> own = parts ? *parts : std::vector<uint32_t>();
    const WeightedDag *current = &dag;
    while (current->numNodes() > enough) {
      std::optional<CoarseLevel> level = coarsen(*current, parts ? &own : nullptr, maxNodeWeight, random);
      if (!level)
        break;
      if (parts) {
        std::vector<uint32_t> coarse(level->dag.numNodes());
        for (size_t v = 0; v < level->nodeOf.size(); ++v)
          coarse[level->nodeOf[v]] = own[v];
        own = std::move(coarse);
      }
      levels.push_back(std::move(*level));
      current = &levels.back().dag;
    }
    return levels;
  }

  /// From the parts of the coarsest graph to those of `dag`, refined on each level.
  void unfold(const std::vector<CoarseLevel> &levels, std::vector<uint32_t> &parts) const {
    for (size_t i = levels.size() + 1; i-- > 0;) {
      if (i < levels.size()) {
        std::vector<uint32_t> fine(levels[i].nodeOf.size());
        for (size_t v = 0; v < fine.size(); ++v)
          fine[v] = parts[levels[i].nodeOf[v]];
        parts = std::move(fine);
      }
      refine(i == 0 ? dag : levels[i - 1].dag, limits, parts);
    }
  }

  /// The best cut of many topological orders of a small graph, each refined.
  std::vector<uint32_t> cut(const WeightedDag &coarse) {
    const double n = coarse.numNodes();
    const auto numOrders = uint32_t(std::clamp(maxCutSteps / (n * n), 2.0, double(maxOrders)));
    std::optional<std::vector<uint32_t>> best;
    uint64_t bestCut = 0;
    PartLimits own = limits;
    auto consider = [&](const std::vector<uint32_t> &order) {
      std::optional<std::vector<uint32_t>> parts = cutOrder(coarse, order, own);
      if (!parts)
        return;
      refine(coarse, limits, *parts);
      if (uint64_t weight = cutWeight(coarse, *parts); !best || weight < bestCut) {
        best = std::move(parts);
        bestCut = weight;
      }
    };
    const std::vector<uint32_t> first = coarse.topologicalOrder();
    consider(first);
    for (uint32_t i = 0; i < numOrders; ++i)
      consider(drawOrder(coarse, OrderKind(i % 3), random));
    // Nodes are too heavy for the limit: the finer graphs bring it back.
    own.maxWeight = leastLargestWeight(coarse, first, limits.numParts);
    if (!best)
      consider(first);
    return *best;
  }

  const WeightedDag &dag;
  const PartLimits limits;
  std::mt19937_64 random;
  uint64_t maxNodeWeight;
};

} // namespace

Result<AcyclicPartition> partitionAcyclic(const WeightedDag &dag, const AcyclicOptions &options) {
  const uint32_t n = dag.numNodes(), p = options.numParts;
  if (p == 0 || p > n)
    return Status::error(ErrorKind::usage, "{} parts were asked for of a graph of {} nodes: use 1 to {}", p, n,
                         std::max(1u, n));
  const std::vector<uint32_t> order = dag.topologicalOrder();
  if (order.size() < n)
    return Status::error(ErrorKind::badInput,
                         "the graph has a cycle through {} of its {} nodes; every op must come after the ops whose "
                         "results it uses",
                         nodesOnCycles(n, dag.directedEdges()).size(), n);
  const double mean = double(dag.totalWeight()) / p;
  PartLimits limits{p,
                    std::max(uint64_t(std::floor(mean * (1 + options.imbalance))), leastLargestWeight(dag, order, p))};
  std::optional<std::pair<uint64_t, uint64_t>> bestCost;
  AcyclicPartition best;
  const uint32_t numTries = n > maxManyTries ? std::min(options.numTries, 2u) : options.numTries;
  for (uint32_t attempt = 0; attempt < std::max(1u, numTries); ++attempt) {
    Partitioner partitioner(dag, limits, options.seed + attempt);
    std::vector<uint32_t> parts = partitioner.run(attempt > 0 || n > maxUncontracted);
    if (auto cost = partitioner.cost(parts); !bestCost || cost < *bestCost) {
      bestCost = cost;
      best.parts = std::move(parts);
    }
  }
  best.cut = bestCost->second;
  const std::vector<uint64_t> weights = partWeights(dag, best.parts, p);
  best.largestWeight = *std::max_element(weights.begin(), weights.end());
  return best;
}

} // namespace dg::partitioner
