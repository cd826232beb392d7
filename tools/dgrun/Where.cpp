// SPDX-License-Identifier: Apache-2.0
#include "tools/dgrun/Where.h"

#include "runtime/launch/link/HeldSignals.h"

#include <cstdio>
#include <sched.h>
#include <thread>
#include <unistd.h>

namespace dg::dgrun {

static Status wrongCount(const Flags &flags, const plan::Plan &plan) {
  return Status::error(ErrorKind::usage,
                       "-n {}: the plan of {} is for {} ranks (pipe={}, data={}, tensor={}); run it with -n {}, with a "
                       "multiple of {} for "
                       "several replicas of it, or compile it for {}",
                       *flags.ranks, flags.job, plan.mesh.numRanks(), plan.mesh.sizes[0], plan.mesh.sizes[1],
                       plan.mesh.sizes[2], plan.mesh.numRanks(), plan.mesh.numRanks(), *flags.ranks);
}

/// How often the plan runs, where every node starts as many ranks as this one. Where that is no multiple of the plan's,
/// nodes may start unequally many for one replica: they are counted when they meet.
static int64_t replicasOf(const Where &where, int64_t numRanks) {
  const int64_t total = where.numLocal * where.numNodes;
  return total % numRanks == 0 ? total / numRanks : 1;
}

static Status useNodes(const Flags &flags, int64_t numRanks, Where &where) {
  where.numNodes = *flags.nodes;
  if (!flags.nodeRank)
    return Status::error(ErrorKind::usage, "--nnodes {}: say which of them this is: --node-rank 0 to {}",
                         where.numNodes, where.numNodes - 1);
  where.node = *flags.nodeRank;
  if (where.node >= where.numNodes)
    return Status::error(ErrorKind::usage, "--node-rank {}: expected a number from 0 to {}, as --nnodes is {}",
                         where.node, where.numNodes - 1, where.numNodes);
  if (where.node > 0 && flags.rendezvous.empty())
    return Status::error(ErrorKind::usage,
                         "--node-rank {}: say where node 0 is: --rdzv-endpoint HOST:PORT, as it has "
                         "printed them",
                         where.node);
  if (!flags.ranks && numRanks % where.numNodes != 0)
    return Status::error(ErrorKind::usage,
                         "the {} ranks of the plan cannot be divided evenly among {} nodes; say with -n how many each "
                         "starts",
                         numRanks, where.numNodes);
  where.numLocal = where.ranksOnHost = flags.ranks.value_or(numRanks / where.numNodes);
  return Status::ok();
}

/// Whether the launcher has given each of its processes cores of its own.
static bool isBound() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < sysconf(_SC_NPROCESSORS_ONLN);
}

static std::chrono::milliseconds joinTime(const Flags &flags) {
  return std::chrono::milliseconds(int64_t(std::min(flags.rendezvousSeconds, 1e9) * 1000));
}

Result<Where> findWhere(const Flags &flags, const plan::Plan &plan) {
  Where where;
  int64_t numRanks = plan.mesh.numRanks();
  if (flags.nodes) {
    DG_RETURN_IF_ERROR(useNodes(flags, numRanks, where));
    where.replicas = replicasOf(where, numRanks);
    if (!where.isAlone())
      return where;
  } else {
    auto manager = ProcessManager::find(deadlineIn(joinTime(flags)));
    if (!manager)
      return manager.status();
    if (*manager) {
      where.manager = std::move(*manager);
      where.numNodes = where.manager->size();
      where.node = where.manager->rank();
      where.numLocal = flags.ranks.value_or(1);
      where.replicas = replicasOf(where, numRanks);
      where.ranksOnHost = isBound() ? where.numLocal : where.numLocal * where.manager->sizeOnHost();
      return where;
    }
  }
  where.numLocal = where.ranksOnHost = flags.ranks.value_or(numRanks);
  if (where.numLocal % numRanks != 0)
    return wrongCount(flags, plan);
  where.replicas = where.numLocal / numRanks;
  return where;
}

/// Where node 0 listens, and what it tells the others by way of the launcher that has started them all.
static Status meetThroughManager(Where &where, NodeOptions &nodes) {
  bool isOneHost = where.manager->sizeOnHost() == where.manager->size();
  std::string mine;
  if (where.node == 0) {
    std::string text;
    for (char byte : randomBytes(32))
      text += fmt::format("{:02x}", uint8_t(byte));
    Secret secret(text);
    auto point = isOneHost ? RendezvousPoint::listenOnHost(secret) : RendezvousPoint::listen("", secret);
    if (!point)
      return point.status();
    nodes.point = std::move(*point);
    mine = text + " " + nodes.point->endpoint();
    forget(text.data(), text.size());
  }
  auto shared = where.manager->share(mine, deadlineIn(nodes.joinTime));
  forget(mine.data(), mine.size());
  if (!shared)
    return shared.status();
  size_t space = shared->find(' ');
  if (space == std::string::npos)
    return Status::error(ErrorKind::runFailed,
                         "PMIx gave {} bytes as the place to meet, expected a secret and an endpoint", shared->size());
  nodes.coordinator.secret = Secret(std::string_view(*shared).substr(0, space));
  nodes.coordinator.name = shared->substr(space + 1);
  forget(shared->data(), space);
  where.manager.reset(); // its threads must not be there when ranks are forked
  return Status::ok();
}

static Status meetByHand(const Where &where, const Flags &flags, NodeOptions &nodes) {
  auto secret = readSecret();
  if (!secret)
    return secret.status();
  nodes.coordinator.secret = *secret;
  nodes.coordinator.name = flags.rendezvous;
  if (where.node > 0)
    return Status::ok();
  auto point = RendezvousPoint::listen(flags.rendezvous, *secret);
  if (!point)
    return point.status();
  nodes.point = std::move(*point);
  fmt::print(stderr, "dgrun: node 0 of {} waits for the others: start them with --rdzv-endpoint {}\n", where.numNodes,
             nodes.point->endpoint());
  return Status::ok();
}

/// Whether messages between hosts are protected, and why.
static void chooseProtection(const Flags &flags, NodeOptions &nodes, bool isManaged) {
  nodes.isSecure = flags.secure || !(flags.trustFabric || isManaged);
  nodes.linkReason = flags.secure        ? "--secure asks for it"
                     : flags.trustFabric ? "--trust-fabric says that the network is trusted"
                     : isManaged         ? "srun or mpirun has started the job, and its cluster is trusted"
                                         : "the job was joined by hand, with --nnodes";
}

int launch(Where where, const Flags &flags, LaunchOptions options, const std::string &fingerprint,
           const RankMain &rankMain) {
  if (where.isAlone())
    return launchLocal(options, rankMain);
  NodeOptions nodes;
  nodes.numNodes = where.numNodes;
  nodes.node = where.node;
  nodes.numLocal = where.numLocal;
  chooseProtection(flags, nodes, where.manager != nullptr);
  nodes.fingerprint = fmt::format("{}, between hosts: {}", fingerprint, nodes.isSecure ? "secure" : "trusted");
  nodes.joinTime = joinTime(flags);
  options.isOutputShared = where.manager != nullptr;
  Status met = where.manager ? meetThroughManager(where, nodes) : meetByHand(where, flags, nodes);
  if (met && where.node > 0) {
    constexpr std::chrono::milliseconds pause{500};
    auto addresses = resolveEndpoint(nodes.coordinator.name);
    // A name service that is away for a moment, as others that this node waits for.
    for (Deadline limit = deadlineIn(nodes.joinTime); !addresses && addresses.status().kind() == ErrorKind::lost &&
                                                      std::chrono::steady_clock::now() < limit && !isStopAsked();
         addresses = resolveEndpoint(nodes.coordinator.name))
      std::this_thread::sleep_for(pause);
    if (addresses)
      nodes.coordinator.addresses = std::move(*addresses);
    met = addresses.status();
    nodes.coordinator.greeting.node = uint32_t(where.node);
  }
  if (!met)
    return isStopAsked() ? endStopped(options) : endBeforeRanks(options, met);
  return launchNode(options, std::move(nodes), rankMain);
}

} // namespace dg::dgrun
