// SPDX-License-Identifier: Apache-2.0
// The launcher of a node other than node 0: it starts its ranks, tells the coordinator what happens to them, and does
// what the coordinator says. When it loses the coordinator it ends its ranks itself.
#pragma once

#include "runtime/launch/link/Rendezvous.h"
#include "runtime/launch/ranks/LocalRanks.h"

namespace dg {

/// How the coordinator can be found again.
struct CoordinatorPlace {
  std::vector<SocketAddress> addresses;
  Secret secret;
  Greeting greeting;
  std::string name; ///< for messages: its endpoint
};

/// One thread.
class Follower {
public:
  Follower(const LaunchOptions &options, CoordinatorPlace place, std::unique_ptr<NodeLink> link,
           RankPlacement placement);

  /// Runs this node's ranks to the end of the job and returns its exit code. When it returns none of them is alive.
  int run(const RankMain &rankMain);

private:
  void handleFromLink();
  void knock(Deadline now);
  void lose(std::string how);
  void tick();
  /// False where it cannot be done; then the coordinator is left.
  bool restart(const LaunchMessage &command);
  int finish();

  const LaunchOptions &options;
  const CoordinatorPlace place;
  std::unique_ptr<NodeLink> link; ///< null once it is lost
  LocalRanks local;
  std::unique_ptr<RendezvousAttempt> attempt;
  std::optional<LaunchMessage> end;
  const RankMain *rankMain = nullptr;
  std::string loss; ///< how the coordinator was lost
  bool isSilenceTold = false;
  Deadline heardAt = {}, lastTick = {}, nextBeat = {}, nextKnock = {};
};

} // namespace dg
