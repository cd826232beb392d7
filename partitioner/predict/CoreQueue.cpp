// SPDX-License-Identifier: Apache-2.0
#include "partitioner/predict/CoreQueue.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dg::partitioner {

CoreQueue::CoreQueue(int64_t numRanks, size_t numStages, const Cluster &cluster)
    : sliceUs(cluster.sliceUs), stages(numStages) {
  const int64_t perNode = cluster.devicesPerNode, cores = cluster.coresPerNode;
  shared = cores > 0 && std::min(numRanks, perNode) > cores;
  if (!shared || numStages == 0)
    return;
  const int64_t perStage = numRanks / int64_t(numStages);
  for (size_t s = 0; s < numStages; ++s)
    for (int64_t rank = int64_t(s) * perStage; rank < int64_t(s + 1) * perStage; ++rank) {
      uint32_t &ranks = stages[s].ranks[rank / perNode * cores + rank % perNode % cores];
      stages[s].most = std::max(stages[s].most, ++ranks);
    }
}

bool CoreQueue::overlap(uint32_t a, uint32_t b) const {
  return std::any_of(stages[a].ranks.begin(), stages[a].ranks.end(),
                     [&](const auto &entry) { return stages[b].ranks.contains(entry.first); });
}

std::vector<uint32_t> CoreQueue::give(double nowUs) {
  std::vector<uint32_t> given;
  for (auto next = waiting.begin(); next != waiting.end();) {
    bool isFree = true;
    for (uint32_t other = 0; other < stages.size(); ++other)
      isFree = isFree && !(stages[other].holds && overlap(*next, other));
    if (!isFree) {
      ++next;
      continue;
    }
    stages[*next].holds = true;
    stages[*next].sinceUs = nowUs;
    given.push_back(*next);
    next = waiting.erase(next);
  }
  return given;
}

double CoreQueue::endOfSliceUs(uint32_t stage, double nowUs) const {
  const bool isWanted =
      std::any_of(waiting.begin(), waiting.end(), [&](uint32_t other) { return overlap(stage, other); });
  if (sliceUs <= 0 || !isWanted)
    return std::numeric_limits<double>::infinity();
  // A thousand slices tell as much as a million, and a slice too short to be added to the time would never end.
  const double since = stages[stage].sinceUs, slice = std::max(sliceUs, nowUs / 1024);
  return since + slice * (std::floor((nowUs - since) / slice) + 1);
}

} // namespace dg::partitioner
