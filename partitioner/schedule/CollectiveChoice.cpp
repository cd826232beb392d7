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

static std::string bracketingOf(const std::vector<int64_t> &ranks, double bytes, const CostModel &costs) {
  if (ranks.size() <= 2) // one addition: all bracketings are one
    return "rank-order";
  switch (costs.bestAlgorithm(plan::TaskKind::allReduce, costs.groupOf(ranks), bytes)) {
  case Algorithm::direct:
    return "rank-order";
  case Algorithm::recursiveDoubling:
  case Algorithm::tree: // adds the same pairs, and needs twice the steps
    return "halving";
  case Algorithm::twoLevel:
    if (size_t block = blockSizeOf(ranks, costs.cluster()); block > 1)
      return "two-level:" + std::to_string(block);
    return "ring";
  case Algorithm::ring:
    return "ring";
  }
  return "rank-order";
}

void chooseBracketings(plan::Plan &plan, const CostModel &costs) {
  for (plan::Collective &collective : plan.collectives) {
    const plan::Task &task = plan.tasks[collective.task];
    if (task.kind != plan::TaskKind::allReduce)
      continue;
    int64_t first = plan.mesh.rankOf({task.axis == "pipe" ? 0 : int64_t(task.stage), 0, 0});
    collective.algorithm = bracketingOf(plan.mesh.groupOf(first, task.axis), double(collective.bytes), costs);
  }
}

} // namespace dg::partitioner
