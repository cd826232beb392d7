// SPDX-License-Identifier: Apache-2.0
// The closed forms. a: latency, b: time per byte, n: ranks, L = ceil(log2 n), S: bytes of the whole tensor.
#include "partitioner/model/CostModel.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace dg::partitioner {

using plan::TaskKind;

static double readCurve(const KernelCurve &curve, double x) {
  auto above = std::lower_bound(curve.begin(), curve.end(), std::pair(x, 0.0));
  if (above == curve.begin())
    return above->second * x / above->first;
  auto below = std::prev(above);
  if (above == curve.end())
    return below->second * x / below->first;
  double share = std::log(x / below->first) / std::log(above->first / below->first);
  return below->second * std::pow(above->second / below->second, share);
}

double CostModel::kernelUs(double flops, double bytes, plan::DType type, const std::string &op) const {
  if (flops <= 0 && bytes <= 0)
    return 0;
  const Device &device = machines.device;
  auto rate = device.flopsPerSecond.find(type);
  if (rate == device.flopsPerSecond.end())
    rate = device.flopsPerSecond.find(plan::DType::f32);
  if (auto curve = device.kernels.find(op); curve != device.kernels.end()) {
    double roofUs = std::max(flops / rate->second, bytes / device.memoryBytesPerSecond) * 1e6;
    return std::max(device.launchUs, readCurve(curve->second, roofUs));
  }
  double computeS = flops / (rate->second * device.efficiency);
  return std::max(computeS, bytes / device.memoryBytesPerSecond) * 1e6 + device.launchUs;
}

/// One level: all ranks joined by the same kind of link. An all-reduce that is a reduce-scatter and an all-gather of
/// equal cost is written as twice that cost.
static double oneLevelUs(TaskKind kind, Algorithm algorithm, uint32_t numRanks, double bytes, const Link &link) {
  if (numRanks <= 1)
    return 0;
  const double n = numRanks, a = link.latencyUs, whole = bytes / link.bytesPerSecond * 1e6;
  const double rest = whole * (n - 1) / n; // all parts but one's own
  const double L = std::bit_width(numRanks - 1);
  const bool isAllReduce = kind == TaskKind::allReduce;
  switch (algorithm) {
  case Algorithm::direct:
    return (a + rest) * (isAllReduce ? 2 : 1);
  case Algorithm::ring:
    return ((n - 1) * a + rest) * (isAllReduce ? 2 : 1);
  case Algorithm::recursiveDoubling:
    return isAllReduce ? L * (a + whole) : L * a + rest;
  case Algorithm::tree: // gather or reduce to a root, then scatter or broadcast from it
    return isAllReduce ? 2 * L * (a + whole) : L * (a + whole) + L * a + rest;
  case Algorithm::twoLevel:
    break;
  }
  assert(false && "two levels are composed of one-level collectives");
  return 0;
}

double CostModel::collectiveUs(TaskKind kind, Algorithm algorithm, Group group, double bytes) const {
  assert(plan::isCollective(kind));
  const Link &intra = machines.intraNode, &inter = machines.interNode;
  if (algorithm != Algorithm::twoLevel)
    return oneLevelUs(kind, algorithm, group.numRanks, bytes, group.numNodes > 1 ? inter : intra);
  // Inside a node every rank takes an equal part, and equal parts of all nodes are joined over as many links at once.
  const uint32_t perNode = (group.numRanks + group.numNodes - 1) / group.numNodes;
  double insideUs = oneLevelUs(kind, Algorithm::direct, perNode, bytes, intra);
  return insideUs + oneLevelUs(kind, Algorithm::ring, group.numNodes, bytes / perNode, inter);
}

Algorithm CostModel::bestAlgorithm(TaskKind kind, Group group, double bytes) const {
  Algorithm best = Algorithm::direct;
  if (group.numNodes > 1) // between nodes nobody reaches every other rank at once without sharing its link
    best = Algorithm::ring;
  double bestUs = collectiveUs(kind, best, group, bytes);
  for (Algorithm algorithm : {Algorithm::ring, Algorithm::recursiveDoubling, Algorithm::tree, Algorithm::twoLevel}) {
    double us = collectiveUs(kind, algorithm, group, bytes);
    if (us < bestUs) {
      best = algorithm;
      bestUs = us;
    }
  }
  return best;
}

Group CostModel::groupOf(const std::vector<int64_t> &ranks) const {
  std::vector<int64_t> nodes;
  for (int64_t rank : ranks)
    nodes.push_back(rank / machines.devicesPerNode);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return {uint32_t(ranks.size()), uint32_t(nodes.size())};
}

Group CostModel::neighbours(uint32_t numRanks) const {
  return {numRanks, (numRanks + machines.devicesPerNode - 1) / machines.devicesPerNode};
}

const Link &CostModel::linkBetweenStages(uint32_t from, uint32_t to, int64_t ranksPerStage) const {
  const Link *slowest = nullptr;
  for (int64_t i = 0; i < ranksPerStage; ++i) {
    const Link &link = linkBetween(from * ranksPerStage + i, to * ranksPerStage + i);
    if (!slowest || link.bytesPerSecond < slowest->bytesPerSecond)
      slowest = &link;
  }
  return *slowest;
}

double CostModel::sendUs(double bytes, const Link &link, Group group) const {
  const double wholeUs = bytes / link.bytesPerSecond * 1e6;
  if (!isSentInParts(bytes, link, group))
    return wholeUs;
  return wholeUs / group.numRanks + gatherUs(bytes, group);
}

bool CostModel::isSentInParts(double bytes, const Link &link, Group group) const {
  const double wholeUs = bytes / link.bytesPerSecond * 1e6;
  return group.numRanks > 1 && wholeUs / group.numRanks + gatherUs(bytes, group) < wholeUs;
}

double CostModel::gatherUs(double bytes, Group group) const {
  return collectiveUs(TaskKind::allGather, bestAlgorithm(TaskKind::allGather, group, bytes), group, bytes);
}

} // namespace dg::partitioner
