// SPDX-License-Identifier: Apache-2.0
// A non-blocking stream socket with what has not been sent yet and what has arrived: the bytes under ControlSocket and
// NodeLink.
#pragma once

#include <cstddef>
#include <string>

namespace dg {

/// Owns the descriptor. One thread.
class BufferedSocket {
public:
  /// Takes the descriptor and makes it non-blocking.
  explicit BufferedSocket(int descriptor);
  BufferedSocket(const BufferedSocket &) = delete;
  ~BufferedSocket();

  int descriptor() const { return socket; }
  bool hasOutput() const { return numSent < outgoing.size(); }
  /// Writes and reads what is possible now. False when the other end is gone; what it had sent is in `incoming`.
  bool flush();
  bool fill();

  std::string outgoing; ///< append here; flush() empties it
  std::string incoming; ///< erase from here what was taken

private:
  int socket;
  size_t numSent = 0; ///< of `outgoing`
};

} // namespace dg
