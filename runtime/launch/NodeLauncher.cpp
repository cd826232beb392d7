// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/NodeLauncher.h"

#include "runtime/launch/Coordinator.h"
#include "runtime/launch/link/HeldSignals.h"
#include "runtime/launch/link/JobKeys.h"
#include "runtime/launch/link/LinkTimes.h"
#include "runtime/support/FileWriting.h"
#include "runtime/support/Printable.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <set>
#include <unistd.h>

namespace dg {

using Clock = std::chrono::steady_clock;
using Kind = LaunchMessage::Kind;

static std::string hostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

static std::string makeJobId() {
  std::string id = jobIdOfEnvironment();
  return id.empty() ? randomSuffix() : id;
}

/// Equal for processes that can map each other's memory: same machine, same name, same namespaces.
static std::string hostIdentity() {
  std::string identity = hostName();
  char text[256];
  if (int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); file >= 0) {
    identity.append(" ").append(text, size_t(std::max<ssize_t>(read(file, text, 36), 0)));
    close(file);
  }
  for (const char *space : {"/proc/self/ns/ipc", "/proc/self/ns/pid"})
    identity.append(" ").append(text, size_t(std::max<ssize_t>(readlink(space, text, sizeof text), 0)));
  return identity;
}

namespace {

/// Node 0 while the others are still coming.
class Gathering {
public:
  Gathering(const LaunchOptions &options, NodeOptions &nodes) : options(options), nodes(nodes) {
    guests.resize(size_t(nodes.numNodes));
    guests[0].request = {nodes.numLocal, hostName(), hostIdentity(), nodes.fingerprint};
    guests[0].hasJoined = true;
  }

  /// Returns when everyone is here and fits; tells them which ranks are theirs.
  Status gather();
  void refuseAll(const Status &why);
  std::vector<Member> members;
  RankPlacement placement; ///< of node 0

private:
  struct Guest {
    std::unique_ptr<NodeLink> link;
    JoinRequest request;
    std::string address;
    bool hasJoined = false;
  };
  void receive(Arrival arrival);
  void hear(Guest &guest);
  Status check() const;
  void assign();

  const LaunchOptions &options;
  NodeOptions &nodes;
  std::vector<Guest> guests;
};

} // namespace

static constexpr size_t runIdBytes = 32;

/// What this launcher makes the keys of its ranks from.
static void takeKey(const NodeOptions &nodes, RankPlacement &placement) {
  placement.linkReason = nodes.linkReason;
  if (!placement.runId.empty())
    placement.runKey = runKeyOf(nodes.coordinator.secret, placement.runId);
}

static void refuse(NodeLink &link, const Status &why) {
  link.queue({.kind = Kind::refuse, .number = why.exitCode(), .text = why.message()});
  link.flush();
}

void Gathering::receive(Arrival arrival) {
  uint32_t node = arrival.greeting.node;
  if (arrival.greeting.purpose != Greeting::Purpose::join)
    return;
  if (node == 0 || node >= guests.size())
    return refuse(*arrival.link,
                  Status::error(ErrorKind::usage,
                                "--node-rank {}: the job has {} nodes, of which 0 is taken: give 1 to {}", node,
                                guests.size(), guests.size() - 1));
  if (guests[node].link)
    return refuse(*arrival.link, Status::error(ErrorKind::usage,
                                               "--node-rank {}: this node has come already, from {}; give every node "
                                               "another number",
                                               node, guests[node].address));
  guests[node] = {std::move(arrival.link), {}, arrival.address, false};
}

void Gathering::hear(Guest &guest) {
  if (!guest.link)
    return;
  bool isConnected = guest.link->flush();
  isConnected = guest.link->fill() && isConnected;
  while (std::optional<LaunchMessage> message = guest.link->take())
    if (message->kind == Kind::join)
      guest.hasJoined = unpackJoin(message->text, guest.request);
  if (!isConnected)
    guest = {}; // it went again; another may come in its place
}

Status Gathering::check() const {
  int64_t total = 0;
  std::string shares;
  for (size_t node = 0; node < guests.size(); ++node) {
    const JoinRequest &request = guests[node].request;
    total += request.numLocal;
    shares += fmt::format("{}{} on node {} ({})", node ? ", " : "", request.numLocal, node, request.hostName);
    if (request.fingerprint != nodes.fingerprint)
      return Status::error(
          ErrorKind::usage,
          "node {} (host {}) was started with another job or other flags: found '{}', node 0 has '{}'{}", node,
          request.hostName, request.fingerprint, nodes.fingerprint,
          request.numLocal == nodes.numLocal
              ? ""
              : fmt::format("; it starts {} ranks and node 0 {}: replicas need the same -n on all nodes",
                            request.numLocal, nodes.numLocal));
  }
  if (total != options.numRanks)
    return Status::error(ErrorKind::usage,
                         "the plan is for {} ranks, but the nodes start {}: {}; say how many with -n (for replicas a "
                         "multiple, and the same on all nodes)",
                         options.numRanks, total, shares);
  return Status::ok();
}

void Gathering::assign() {
  std::set<std::string> hosts;
  for (const Guest &guest : guests)
    hosts.insert(guest.request.hostId);
  RankPlacement next;
  next.numRanks = options.numRanks;
  next.jobId = makeJobId();
  next.spansHosts = hosts.size() > 1;
  if (next.spansHosts && nodes.isSecure)
    next.runId = randomBytes(runIdBytes);
  for (size_t node = 0; node < guests.size(); ++node) {
    Guest &guest = guests[node];
    next.numLocal = guest.request.numLocal;
    next.firstLocalRank = 0;
    for (size_t before = 0; before < node; ++before)
      if (guests[before].request.hostId == guest.request.hostId)
        next.firstLocalRank += guests[before].request.numLocal;
    Member member;
    member.host = guest.request.hostName;
    member.firstRank = next.firstRank;
    member.numRanks = next.numLocal;
    if (node == 0) {
      placement = next;
      placement.hostId = guest.request.hostId;
      placement.hostName = guest.request.hostName;
      takeKey(nodes, placement);
    } else {
      if (placement.networkDevice.empty() && guest.request.hostId != placement.hostId) {
        placement.networkDevice = deviceOf(guest.link->descriptor());
        placement.networkAddress = localAddressOf(guest.link->descriptor());
      }
      guest.link->queue({.kind = Kind::assign, .text = packPlacement(next)});
      guest.link->flush();
      member.link = std::move(guest.link);
    }
    members.push_back(std::move(member));
    next.firstRank += next.numLocal;
  }
}

void Gathering::refuseAll(const Status &why) {
  for (Guest &guest : guests)
    if (guest.link)
      refuse(*guest.link, why);
}

Status Gathering::gather() {
  Deadline deadline = deadlineIn(nodes.joinTime);
  auto missing = [this] {
    return std::find_if(guests.begin(), guests.end(), [](const Guest &guest) { return !guest.hasJoined; });
  };
  while (missing() != guests.end()) {
    if (Clock::now() > deadline)
      return Status::error(
          ErrorKind::lost,
          "node {} did not come to the rendezvous {} within {:g} s; start it there, or wait longer with "
          "--rdzv-timeout{}",
          missing() - guests.begin(), nodes.point->endpoint(), double(nodes.joinTime.count()) / 1000,
          nodes.point->numRefused()
              ? fmt::format(" ({} connections without the right secret were refused)", nodes.point->numRefused())
              : "");
    if (isStopAsked())
      return Status::error(ErrorKind::lost, "{} was stopped before all nodes had come", hostName());
    PollSet set;
    nodes.point->addTo(set);
    for (const Guest &guest : guests)
      if (guest.link)
        set.add(guest.link->descriptor(), POLLIN, [] {});
    set.wait(tickTime);
    for (Arrival &arrival : nodes.point->takeArrivals())
      receive(std::move(arrival));
    for (Guest &guest : guests)
      hear(guest);
  }
  DG_RETURN_IF_ERROR(check());
  assign();
  return Status::ok();
}

/// A node other than 0: comes to the rendezvous and waits for its ranks.
static Status join(const NodeOptions &nodes, std::unique_ptr<NodeLink> &link, RankPlacement &placement) {
  Deadline deadline = deadlineIn(nodes.joinTime);
  const CoordinatorPlace &place = nodes.coordinator;
  auto joined = joinRendezvous(place.addresses, place.secret, place.greeting, deadline);
  if (!joined)
    return joined.status();
  link = std::move(*joined);
  placement.hostId = hostIdentity();
  placement.hostName = hostName();
  placement.networkDevice = deviceOf(link->descriptor());
  placement.networkAddress = localAddressOf(link->descriptor());
  link->queue(
      {.kind = Kind::join, .text = packJoin({nodes.numLocal, hostName(), placement.hostId, nodes.fingerprint})});
  while (true) {
    bool isConnected = link->flush();
    isConnected = link->fill() && isConnected;
    while (std::optional<LaunchMessage> message = link->take()) {
      if (message->kind == Kind::assign && unpackPlacement(message->text, placement)) {
        takeKey(nodes, placement);
        return Status::ok();
      }
      if (message->kind == Kind::refuse)
        return Status::error(kindOfExitCode(int(message->number)), "{}", message->text);
    }
    if (!isConnected)
      return Status::error(ErrorKind::lost, "node 0 at {} went away before the job began", place.name);
    if (Clock::now() > deadline)
      return Status::error(ErrorKind::lost, "node 0 at {} did not begin the job within {:g} s: some node is missing",
                           place.name, double(nodes.joinTime.count()) / 1000);
    if (isStopAsked())
      return Status::error(ErrorKind::lost, "stopped");
    PollSet set;
    set.add(link->descriptor(), short(POLLIN | (link->hasOutput() ? POLLOUT : 0)), [] {});
    set.wait(tickTime);
  }
}

int launchNode(const LaunchOptions &options, NodeOptions nodes, const RankMain &rankMain) {
  auto fail = [&](const Status &status) {
    return isStopAsked() ? endStopped(options) : endBeforeRanks(options, status);
  };
  if (nodes.node == 0) {
    Gathering gathering(options, nodes);
    if (Status status = gathering.gather(); !status) {
      gathering.refuseAll(status);
      return fail(status);
    }
    Coordinator coordinator(options, std::move(gathering.members), std::move(gathering.placement),
                            std::move(nodes.point));
    return coordinator.run(rankMain);
  }
  std::unique_ptr<NodeLink> link;
  RankPlacement placement;
  if (Status status = join(nodes, link, placement); !status)
    return fail(status);
  nodes.coordinator.greeting.purpose = Greeting::Purpose::probe;
  Follower follower(options, std::move(nodes.coordinator), std::move(link), std::move(placement));
  return follower.run(rankMain);
}

int endBeforeRanks(const LaunchOptions &options, const Status &status) {
  fmt::print(stderr, "{}: {}\n", options.tool, printable(status.message()));
  if (options.describeEvent) {
    std::fputs(
        options.describeEvent({.text = status.message(), .host = hostName(), .job = jobIdOfEnvironment()}).c_str(),
        stdout);
    std::fflush(stdout);
  }
  return status.exitCode();
}

std::string jobIdOfEnvironment() {
  for (const char *name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"})
    if (const char *id = std::getenv(name); id && *id)
      return id;
  return "";
}

int endStopped(const LaunchOptions &options) {
  std::string why = describeEarlyStop(options, "SIGTERM");
  if (!options.isResumable) {
    (void)endBeforeRanks(options, Status::error(ErrorKind::lost, "{}", why));
    return 128 + SIGTERM;
  }
  fmt::print(stderr, "{}: {}\n", options.tool, why);
  return 75;
}

int launchLocal(const LaunchOptions &options, const RankMain &rankMain) {
  if (options.numRanks < 1) {
    return endBeforeRanks(options, Status::error(ErrorKind::usage,
                                                 "found {} ranks, expected at least 1; give -n a positive number",
                                                 options.numRanks));
  }
  RankPlacement placement;
  placement.numLocal = placement.numRanks = options.numRanks;
  placement.hostName = hostName();
  placement.jobId = makeJobId();
  std::vector<Member> members(1);
  members[0].host = hostName();
  members[0].numRanks = options.numRanks;
  return Coordinator(options, std::move(members), std::move(placement), nullptr).run(rankMain);
}

} // namespace dg
