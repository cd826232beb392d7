// SPDX-License-Identifier: Apache-2.0
// How two launchers prove to each other that they know the job's secret before either reads anything else:
//
//   server → client   magic, nonce S
//   client → server   nonce C, who it is and what it wants, HMAC(secret, "client", S, C, who)
//   server → client   HMAC(secret, "server", S, C, who)
//
// Both nonces are fresh, so that a recorded conversation proves nothing. All sizes are fixed: what a stranger sends is
// compared, never interpreted.
#pragma once

#include "runtime/launch/link/NodeLink.h"

#include <memory>
#include <string>

namespace dg {

/// Who knocks, and why.
struct Greeting {
  enum class Purpose : uint32_t { join, probe };
  uint32_t node = 0;
  Purpose purpose = Purpose::join; ///< probe: only to see whether the way is open
};

/// One side of one conversation; never blocks. Owns the descriptor until the link is taken.
class Handshake {
public:
  enum class State { going, done, refused };

  /// `descriptor` is a connected (client: or connecting) non-blocking socket.
  static std::unique_ptr<Handshake> asServer(int descriptor, const Secret &secret);
  static std::unique_ptr<Handshake> asClient(int descriptor, const Secret &secret, Greeting greeting);
  Handshake(const Handshake &) = delete;
  ~Handshake();

  int descriptor() const { return socket; }
  short events() const;
  /// Goes as far as it can now.
  State advance();
  /// When refused: whether the other side had heard a proof and did not like it, or gave a wrong one.
  bool isSecretWrong() const { return hasProved; }
  Greeting greeting() const { return who; }
  /// When done: the conversation goes on as messages.
  std::unique_ptr<NodeLink> takeLink();

private:
  Handshake(int descriptor, const Secret &secret, bool isServer);
  bool flush();
  bool fill(size_t bytes);
  State refuse();
  State advanceServer();
  State advanceClient();
  Digest prove(const char *side) const;

  int socket;
  Secret secret;
  bool isServer;
  Greeting who;
  std::string serverNonce, clientNonce;
  std::string outgoing, incoming;
  bool hasProved = false, isBroken = false;
  State state = State::going;
};

/// Bytes that nobody can guess.
std::string randomBytes(size_t count);

} // namespace dg
