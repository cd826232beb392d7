// SPDX-License-Identifier: Apache-2.0
#include "partitioner/predict/CoreQueue.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dg::partitioner {

CoreQueue::CoreQueue(const plan::Mesh &mesh, const Cluster &cluster)
    : sliceUs(cluster.sliceUs), stages(size_t(mesh.sizeOf(plan::Axis::pipe))) {
  const int64_t numRanks = mesh.numRanks();
  const int64_t perNode = cluster.devicesPerNode, cores = cluster.coresPerNode;
  shared = cores > 0 && std::min(numRanks, perNode) > cores;
  if (!shared)
    return;
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    Seat &stage = stages[size_t(mesh.coordinatesOf(rank).pipe)];
    stage.most = std::max(stage.most, ++stage.ranks[rank / perNode * cores + rank % perNode % cores]);
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
