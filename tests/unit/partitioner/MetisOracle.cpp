// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/partitioner/MetisOracle.h"

#include "partitioner/search/OrderedCuts.h"

#include <metis.h>

#include <algorithm>
#include <numeric>
#include <queue>
#include <stdexcept>

namespace dg::partitioner {

WeightedDag scaledForMetis(const WeightedDag &dag) {
  constexpr double largest = 2e8;
  double edgeTotal = 0;
  for (const WeightedDag::Edge &edge : dag.edges())
    edgeTotal += double(edge.weight);
  auto scale = [&](uint64_t weight, double total) {
    return std::max<uint64_t>(1, uint64_t(double(weight) * std::min(1.0, largest / total)));
  };
  std::vector<uint64_t> weights;
  for (uint32_t v = 0; v < dag.numNodes(); ++v)
    weights.push_back(scale(dag.weight(v), double(dag.totalWeight())));
  std::vector<WeightedDag::Edge> edges = dag.edges();
  for (WeightedDag::Edge &edge : edges)
    edge.weight = scale(edge.weight, edgeTotal);
  return {std::move(weights), std::move(edges)};
}

std::vector<uint32_t> partitionByMetis(const WeightedDag &dag, uint32_t numParts, double imbalance) {
  const uint32_t n = dag.numNodes();
  std::vector<idx_t> begins = {0}, neighbours, edgeWeights, nodeWeights;
  for (uint32_t v = 0; v < n; ++v) {
    nodeWeights.push_back(idx_t(dag.weight(v)));
    for (auto arcs : {dag.ins(v), dag.outs(v)})
      for (const WeightedDag::Arc &arc : arcs) {
        neighbours.push_back(idx_t(arc.node));
        edgeWeights.push_back(idx_t(arc.weight));
      }
    begins.push_back(idx_t(neighbours.size()));
  }
  const auto limit = uint64_t(double(dag.totalWeight()) / numParts * (1 + imbalance));
  std::vector<uint32_t> best;
  std::pair<uint64_t, uint64_t> bestCost{UINT64_MAX, UINT64_MAX};
  for (idx_t seed = 0; seed < 10; ++seed) {
    idx_t options[METIS_NOPTIONS], count = idx_t(n), constraints = 1, parts = idx_t(numParts), cut = 0;
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = seed;
    options[METIS_OPTION_UFACTOR] = idx_t(imbalance * 1000);
    std::vector<idx_t> found(n);
    auto solve = seed % 2 ? METIS_PartGraphRecursive : METIS_PartGraphKway;
    if (solve(&count, &constraints, begins.data(), neighbours.data(), nodeWeights.data(), nullptr, edgeWeights.data(),
              &parts, nullptr, nullptr, options, &cut, found.data()) != METIS_OK)
      throw std::runtime_error("METIS refuses the graph");
    std::vector<uint32_t> own(found.begin(), found.end());
    std::vector<uint64_t> weights = partWeights(dag, own, numParts);
    uint64_t heaviest = *std::max_element(weights.begin(), weights.end());
    std::pair<uint64_t, uint64_t> cost{std::max(heaviest, limit), cutWeight(dag, own)};
    if (cost < bestCost) {
      bestCost = cost;
      best = std::move(own);
    }
  }
  return best;
}

namespace {

/// Parts numbered by the mean position of their nodes.
std::vector<uint32_t> byDepth(const WeightedDag &dag, const std::vector<uint32_t> &parts, uint32_t numParts) {
  std::vector<double> sum(numParts), count(numParts);
  const std::vector<uint32_t> order = dag.topologicalOrder();
  for (uint32_t i = 0; i < order.size(); ++i) {
    sum[parts[order[i]]] += i;
    count[parts[order[i]]] += 1;
  }
  std::vector<uint32_t> sorted(numParts), number(numParts), result;
  std::iota(sorted.begin(), sorted.end(), 0u);
  std::sort(sorted.begin(), sorted.end(), [&](uint32_t a, uint32_t b) {
    return sum[a] / std::max(1.0, count[a]) < sum[b] / std::max(1.0, count[b]);
  });
  for (uint32_t i = 0; i < numParts; ++i)
    number[sorted[i]] = i;
  for (uint32_t part : parts)
    result.push_back(number[part]);
  return result;
}

/// The ready node of the earliest part first.
std::vector<uint32_t> orderByPart(const WeightedDag &dag, const std::vector<uint32_t> &parts) {
  using Entry = std::pair<uint32_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<uint32_t> order, waiting(dag.numNodes());
  for (uint32_t v = 0; v < dag.numNodes(); ++v) {
    waiting[v] = uint32_t(dag.ins(v).size());
    if (waiting[v] == 0)
      ready.push({parts[v], v});
  }
  while (!ready.empty()) {
    order.push_back(ready.top().second);
    ready.pop();
    for (const WeightedDag::Arc &arc : dag.outs(order.back()))
      if (--waiting[arc.node] == 0)
        ready.push({parts[arc.node], arc.node});
  }
  return order;
}

} // namespace

std::vector<uint32_t> repairAcyclic(const WeightedDag &dag, const std::vector<uint32_t> &parts, uint32_t numParts,
                                    uint64_t maxWeight) {
  const std::vector<uint32_t> sorted = byDepth(dag, parts, numParts);
  std::vector<std::vector<uint32_t>> candidates;
  if (auto cut = cutOrder(dag, orderByPart(dag, sorted), {numParts, maxWeight}))
    candidates.push_back(*cut);
  const std::vector<uint32_t> order = dag.topologicalOrder();
  candidates.push_back(sorted);
  for (uint32_t v : order)
    for (const WeightedDag::Arc &arc : dag.ins(v))
      candidates.back()[v] = std::max(candidates.back()[v], candidates.back()[arc.node]);
  candidates.push_back(sorted);
  for (auto v = order.rbegin(); v != order.rend(); ++v)
    for (const WeightedDag::Arc &arc : dag.outs(*v))
      candidates.back()[*v] = std::min(candidates.back()[*v], candidates.back()[arc.node]);
  std::vector<uint32_t> best;
  for (const std::vector<uint32_t> &candidate : candidates) {
    std::vector<uint64_t> weights = partWeights(dag, candidate, numParts);
    if (*std::max_element(weights.begin(), weights.end()) <= maxWeight &&
        (best.empty() || cutWeight(dag, candidate) < cutWeight(dag, best)))
      best = candidate;
  }
  return best;
}

} // namespace dg::partitioner
