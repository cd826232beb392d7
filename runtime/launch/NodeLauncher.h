// SPDX-License-Identifier: Apache-2.0
// A job over several launchers, one for each node or one for each rank: they meet at a rendezvous, agree that they run
// the same job, share out the ranks, and run it under the coordinator of node 0.
#pragma once

#include "runtime/launch/Follower.h"
#include "runtime/launch/link/Rendezvous.h"
#include "runtime/launch/ranks/LocalLauncher.h"

namespace dg {

struct NodeOptions {
  int64_t numNodes = 1, node = 0;
  int64_t numLocal = 1;                   ///< ranks that this launcher starts
  std::string fingerprint;                ///< of job and flags; must be equal on all nodes
  std::unique_ptr<RendezvousPoint> point; ///< node 0
  CoordinatorPlace coordinator;           ///< the other nodes; its secret: all
  /// Messages between hosts are protected by keys that follow from the secret; and why so, or why not.
  bool isSecure = true;
  std::string linkReason;
  /// How long nodes wait for each other at the beginning.
  std::chrono::milliseconds joinTime{300'000};
};

/// Runs this node's ranks of a job with options.numRanks ranks in all; ranks are counted in the order of the nodes. The
/// exit code is that of launchLocal, and the same on every node. Call it as launchLocal.
int launchNode(const LaunchOptions &options, NodeOptions nodes, const RankMain &rankMain);

} // namespace dg
