// SPDX-License-Identifier: Apache-2.0
// Where the launchers of a job find each other: node 0 listens, the others come. Who cannot prove that it knows the
// job's secret is closed out before anything that it sends is interpreted.
#pragma once

#include "runtime/launch/link/Endpoint.h"
#include "runtime/launch/link/Handshake.h"
#include "runtime/launch/link/PollSet.h"
#include "runtime/launch/link/RankContext.h"

#include <deque>

namespace dg {

/// The secret of a job from DG_SECRET_FILE, or DG_SECRET, which is then no longer in the environment. Fails (usage)
/// when there is none, when it is short, or when others may read the file.
Result<Secret> readSecret();
/// Overwrites DG_SECRET where /proc/PID/environ shows it, and removes it.
void forgetSecretInEnvironment();

/// Someone who has proved to know the secret.
struct Arrival {
  Greeting greeting;
  std::unique_ptr<NodeLink> link;
  std::string address;
};

/// The listening side. One thread.
class RendezvousPoint {
public:
  /// `endpoint` is HOST, HOST:PORT or empty for every interface of this host; a free port unless one is given.
  static Result<std::unique_ptr<RendezvousPoint>> listen(const std::string &endpoint, Secret secret);
  /// For launchers of this host only: no port, no name in a file system.
  static Result<std::unique_ptr<RendezvousPoint>> listenOnHost(Secret secret);
  RendezvousPoint(const RendezvousPoint &) = delete;
  ~RendezvousPoint();

  /// What the other nodes are to be told; several addresses when it listens on every interface.
  std::string endpoint() const;
  /// Descriptors that a forked process has to close.
  std::vector<int> descriptors() const;
  void addTo(PollSet &set);
  /// Those who came since the last call. Also closes out those who say nothing for 5 s.
  std::vector<Arrival> takeArrivals();
  uint64_t numRefused() const { return refused; }

private:
  struct Visitor {
    std::unique_ptr<Handshake> handshake;
    Deadline deadline;
    std::string address;
  };
  RendezvousPoint(int listener, SocketAddress place, Secret secret)
      : listener(listener), place(place), secret(std::move(secret)) {}
  void accept();
  void closeOutOldest();
  void advance(Visitor &visitor);

  int listener;
  SocketAddress place; ///< of the listener
  Secret secret;
  std::deque<Visitor> visitors; ///< not yet known; the oldest first
  std::vector<Arrival> arrivals;
  uint64_t refused = 0;
  Deadline restsUntil = {}; ///< nobody is let in before
};

/// An attempt to reach the listening side, which tries the addresses of an endpoint in turn. Never blocks.
class RendezvousAttempt {
public:
  RendezvousAttempt(std::vector<SocketAddress> addresses, Secret secret, Greeting greeting);

  void addTo(PollSet &set);
  /// done: takeLink(); refused: every address has been tried.
  Handshake::State state();
  /// Gives up the address that is being tried, and goes on with the next.
  void skip();
  bool isSecretWrong() const { return hasWrongSecret; }
  std::unique_ptr<NodeLink> takeLink() { return handshake->takeLink(); }

private:
  void startNext();
  std::vector<SocketAddress> addresses;
  Secret secret;
  Greeting greeting;
  size_t next = 0;
  std::unique_ptr<Handshake> handshake;
  bool hasWrongSecret = false;
};

/// Comes to the rendezvous; tries again until the deadline while nobody listens there. Fails at once (usage) when the
/// other side does not know this secret.
Result<std::unique_ptr<NodeLink>> joinRendezvous(const std::vector<SocketAddress> &addresses, const Secret &secret,
                                                 Greeting greeting, Deadline deadline);

} // namespace dg
