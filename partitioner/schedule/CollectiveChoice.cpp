// SPDX-License-Identifier: Apache-2.0
#include "partitioner/schedule/CollectiveChoice.h"

namespace dg::partitioner {

/// How many ranks of a node follow each other in the group, if that is the same all along; otherwise 0.
static size_t blockSizeOf(const std::vector<int64_t> &ranks, const Cluster &cluster) {
  size_t size = 1;
  while (size < ranks.size() && cluster.isSameNode(ranks[0], ranks[size]))
    ++size;
  if (ranks.size() % size != 0)
    return 0;
  for (size_t i = 0; i < ranks.size(); ++i)
    if (!cluster.isSameNode(ranks[i], ranks[i - i % size]))
      return 0;
  return size;
}

static plan::Bracketing bracketingOf(const std::vector<int64_t> &ranks, double bytes, const CostModel &costs) {
  using Kind = plan::Bracketing::Kind;
  if (ranks.size() <= 2) // one addition: all bracketings are one
    return {};
  switch (costs.bestAlgorithm(plan::TaskKind::allReduce, costs.groupOf(ranks), bytes)) {
  case Algorithm::direct:
    return {};
  case Algorithm::recursiveDoubling:
  case Algorithm::tree: // adds the same pairs, and needs twice the steps
    return {Kind::halving};
  case Algorithm::twoLevel:
    if (size_t block = blockSizeOf(ranks, costs.cluster()); block > 1)
      return {Kind::twoLevel, block};
    return {Kind::ring};
  case Algorithm::ring:
    return {Kind::ring};
  }
  return {};
}

void chooseBracketings(plan::Plan &plan, const CostModel &costs) {
  for (plan::Task &task : plan.tasks)
    if (plan::AllReduce *reduce = task.as<plan::AllReduce>()) {
      int64_t first = plan.mesh.rankOf({reduce->axis == plan::Axis::pipe ? 0 : int64_t(task.stage), 0, 0});
      double bytes = double(plan.values[reduce->value].bytes);
      reduce->algorithm = bracketingOf(plan.mesh.groupOf(first, reduce->axis), bytes, costs);
    }
}

} // namespace dg::partitioner
