// SPDX-License-Identifier: Apache-2.0
// The line between a rank and its launcher: framed messages over one end of a socket pair, never blocking unless asked.
#pragma once

#include "runtime/launch/link/BufferedSocket.h"
#include "runtime/launch/link/RankContext.h"

#include <optional>
#include <string>

namespace dg {

enum class FrameKind : uint32_t {
  gather,  ///< to the launcher: one rank's part of an exchange; back: everyone's parts
  failure, ///< to the launcher: number = exit code, origin, payload = message
  kept,    ///< to the launcher: number = step of a snapshot that is whole
};

struct Frame {
  FrameKind kind = FrameKind::gather;
  FailureOrigin origin = FailureOrigin::own;
  uint64_t number = 0; ///< gather: how many exchanges came before
  std::string payload;
};

/// One end. Used by one thread at a time.
class ControlSocket {
public:
  /// Takes the descriptor and makes it non-blocking.
  explicit ControlSocket(int descriptor) : socket(descriptor) {}

  int descriptor() const { return socket.descriptor(); }
  /// Writes later, in flush().
  void queue(const Frame &frame);
  bool hasOutput() const { return socket.hasOutput(); }
  /// Writes and reads what is possible now. False when the other end is gone, or what it sent is no frame; whole frames
  /// that came before can still be taken.
  bool flush() { return socket.flush(); }
  bool fill() { return !isDamaged && socket.fill(); }
  /// Whether it ended because bytes came that are no frame.
  bool isAltered() const { return isDamaged; }
  /// The next whole frame that fill() has brought.
  std::optional<Frame> take();
  /// Sends and waits for the next frame. `what` stands in the message of a failure.
  Status sendBefore(Deadline deadline, const char *what);
  Result<Frame> takeBefore(Deadline deadline, const char *what);

private:
  Status waitUntilReady(short events, Deadline deadline, const char *what);
  BufferedSocket socket;
  bool isDamaged = false; ///< a frame came that is longer than any
};

/// Several byte strings in one payload, and back (nothing if the payload is not what pack made).
std::string packParts(const std::vector<std::string> &parts);
std::optional<std::vector<std::string>> unpackParts(const std::string &payload);

} // namespace dg
