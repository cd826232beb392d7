// SPDX-License-Identifier: Apache-2.0
// How long things take on a cluster: kernels by the roofline, transfers and collectives by latency and bandwidth
// (the alpha-beta model of Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations",
// 2005).
#pragma once

#include "partitioner/model/Cluster.h"
#include "runtime/plan/Plan.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace dg::partitioner {

/// How a collective is routed. The bracketing of its sums is the plan's own matter.
enum class Algorithm {
  direct,            ///< every rank reaches every other at once: mapped memory, or a full crossbar
  ring,              ///< n-1 neighbour steps for each pass
  recursiveDoubling, ///< log2 n steps with the whole (all-reduce) or a doubling (all-gather) message
  tree,              ///< binomial, the whole message in each step
  twoLevel,          ///< inside the nodes, between the nodes, inside the nodes again
};
constexpr auto enumNames(Algorithm) { return std::array{"direct", "ring", "recursive-doubling", "tree", "two-level"}; }
using dg::nameOf;

/// The ranks of a collective, as far as time is concerned.
struct Group {
  uint32_t numRanks = 1;
  uint32_t numNodes = 1; ///< that the ranks stand on
};

/// All methods are const and pure: any thread may call them.
class CostModel {
public:
  explicit CostModel(Cluster cluster) : machines(std::move(cluster)) {}
  const Cluster &cluster() const { return machines; }

  /// max(flops / (peak · efficiency), bytes / memory bandwidth) + launch. Free work (no flops, no bytes) takes 0. Where
  /// the device has a curve for the op it is read instead: between two points straight in logarithms, outside of them
  /// in proportion, and never less than a launch.
  double kernelUs(double flops, double bytes, plan::DType type, const std::string &op = "") const;
  /// `kind` is allReduce, allGather or reduceScatter; `bytes` is the size of the whole tensor (the input of allReduce
  /// and reduceScatter, the output of allGather).
  double collectiveUs(plan::TaskKind kind, Algorithm algorithm, Group group, double bytes) const;
  /// The fastest algorithm for this message; ties go to the earlier enumerator.
  Algorithm bestAlgorithm(plan::TaskKind kind, Group group, double bytes) const;
  /// The link that a message between these ranks takes.
  const Link &linkBetween(int64_t rankA, int64_t rankB) const {
    return machines.isSameNode(rankA, rankB) ? machines.intraNode : machines.interNode;
  }
  /// The slowest link between ranks of two stages that have the same place on them.
  const Link &linkBetweenStages(uint32_t from, uint32_t to, int64_t ranksPerStage) const;
  /// Counts the nodes that these ranks stand on.
  Group groupOf(const std::vector<int64_t> &ranks) const;
  /// Ranks that follow each other, the first of them on a node of its own.
  Group neighbours(uint32_t numRanks) const;
  /// To hand what each rank of `group` holds to the ranks across `link`: whole from each, or a part from each, which
  /// they gather there.
  double sendUs(double bytes, const Link &link, Group group) const;
  bool isSentInParts(double bytes, const Link &link, Group group) const;

private:
  double gatherUs(double bytes, Group group) const;
  Cluster machines;
};

} // namespace dg::partitioner
