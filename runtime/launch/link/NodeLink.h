// SPDX-License-Identifier: Apache-2.0
// The line between the launchers of two nodes: messages over a connection that Handshake has opened. Each carries a
// proof, made with the key of the connection and its place in the order, so that nobody can add, change or repeat one.
#pragma once

#include "runtime/launch/link/BufferedSocket.h"
#include "runtime/launch/link/LaunchMessage.h"
#include "runtime/support/Secret.h"
#include "runtime/support/Sha256.h"

#include <optional>

namespace dg {

/// One end; never blocks. One thread.
class NodeLink {
public:
  /// Takes the descriptor. The two ends differ in `isServer`.
  NodeLink(int descriptor, const Digest &sessionKey, bool isServer);

  int descriptor() const { return socket.descriptor(); }
  /// Writes later, in flush(). Who sends one text over many lines makes its digest once.
  void queue(const LaunchMessage &message) { queue(message, sha256(message.text)); }
  void queue(const LaunchMessage &message, const Digest &digestOfText);
  bool hasOutput() const { return socket.hasOutput(); }
  /// Writes and reads what is possible now. False when the other end is gone or what it sent is damaged; whole
  /// messages that came before can still be taken.
  bool flush() { return socket.flush(); }
  bool fill() { return !isDamaged && socket.fill(); }
  std::optional<LaunchMessage> take();
  /// Whether it ended because bytes came that the other end did not send.
  bool isAltered() const { return isDamaged; }

private:
  Digest prove(char direction, uint64_t number, std::string_view head, const Digest &digestOfText) const;
  BufferedSocket socket;
  Secret key;
  char sending, receiving;
  uint64_t numQueued = 0, numTaken = 0;
  bool isDamaged = false;
};

} // namespace dg
