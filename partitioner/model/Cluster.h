// SPDX-License-Identifier: Apache-2.0
// The machines a plan is made for: equal nodes with devices that may differ in speed, described by numbers, never
// assumed. A cluster comes from a JSON file or from a preset such as "cpu:nodes=4".
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/support/Status.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dg::partitioner {

/// Kernels of one kind of op as measured: what the roofline says of their flops and bytes, and the time they took, both
/// in microseconds; rising.
using KernelCurve = std::vector<std::pair<double, double>>;

/// What one rank computes with.
struct Device {
  std::string name;
  std::map<plan::DType, double> flopsPerSecond; ///< peak; a type that is missing runs at the rate of f32
  uint64_t memoryBytes = 0;
  double memoryBytesPerSecond = 0;
  double efficiency = 1;                               ///< share of the peak that a large kernel reaches, in (0, 1]
  double launchUs = 0;                                 ///< fixed cost of a kernel
  std::map<std::string, KernelCurve> kernels = {};     ///< by op ("dg.matmul"); what is missing runs by the roofline
  std::map<std::string, KernelCurve> busyKernels = {}; ///< the same while the other devices of the node work too
  bool storesScores = false; ///< has no kernel for attention in blocks: tokens × tokens scores are stored
};

/// One direction between two devices.
struct Link {
  double bytesPerSecond = 0;
  double latencyUs = 0;
};

/// Rank r is device r mod devicesPerNode of node r / devicesPerNode.
struct Cluster {
  std::string name;
  uint32_t numNodes = 1, devicesPerNode = 1;
  Device device;
  Link intraNode, interNode;
  /// How many times as fast as `device` each device computes, by rank; empty: all are equal.
  std::vector<double> deviceSpeeds = {};
  uint32_t coresPerNode = 0; ///< that the devices of a node share, where they are fewer than devices; 0: one for each
  double turnUs = 0;         ///< until a core that ranks share has gone from one that waits to the next
  double sliceUs = 0;        ///< after which a rank has to leave such a core to another; 0: only when it waits
  /// The same with `busyKernels` as `kernels` where some node has several of so many ranks.
  Cluster forRanks(uint64_t numRanks) const;
  /// The same where so many ranks of a node share its cores, as rates: each has a part of one. For closed forms, which
  /// do not see who computes while others wait.
  Cluster withCoresOf(uint32_t numCores, uint64_t numRanks) const;
  /// The same of coresPerNode and devicesPerNode.
  Cluster withSharedCores() const;
  double speedOf(int64_t rank) const { return deviceSpeeds.empty() ? 1 : deviceSpeeds[size_t(rank)]; }
  uint64_t numDevices() const { return uint64_t(numNodes) * devicesPerNode; }
  bool isSameNode(int64_t rankA, int64_t rankB) const { return rankA / devicesPerNode == rankB / devicesPerNode; }
};

/// `numRanks` CPU ranks on one host: what a plan by hand is costed on when no cluster is named.
Cluster hostCluster(uint32_t numRanks);

/// The cluster that `spec` names: a preset ("cpu:nodes=4", "a100x8:nodes=64", "h100x8"; "devices=" overrides the
/// devices of a node), or else the path of a JSON file. Fails with usage for a malformed preset and badInput for a bad
/// file; the message names file, key and value.
Result<Cluster> findCluster(std::string_view spec);

/// Reads the text of a cluster file; `where` is named in messages. Unknown and missing keys are errors.
Result<Cluster> parseCluster(const std::string &text, const std::string &where);
/// What parseCluster reads.
std::string toJson(const Cluster &cluster);

} // namespace dg::partitioner
