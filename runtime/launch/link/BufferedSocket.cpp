// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/link/BufferedSocket.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dg {

/// More than the longest message: with that much nothing is read before something was taken.
static constexpr size_t mostIncoming = size_t(257) << 20;

/// What another try may overcome: nothing can move now, or the kernel has no memory for it.
static bool isPassing(int error) { return error == EAGAIN || error == ENOBUFS || error == ENOMEM; }

BufferedSocket::BufferedSocket(int descriptor) : socket(descriptor) {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

BufferedSocket::~BufferedSocket() { close(socket); }

bool BufferedSocket::flush() {
  while (hasOutput()) {
    ssize_t written = ::send(socket, outgoing.data() + numSent, outgoing.size() - numSent, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return isPassing(errno);
    numSent += size_t(written);
  }
  outgoing.clear();
  numSent = 0;
  return true;
}

bool BufferedSocket::fill() {
  char bytes[65536];
  while (incoming.size() < mostIncoming) {
    ssize_t got = ::recv(socket, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return isPassing(errno);
    if (got == 0)
      return false;
    incoming.append(bytes, size_t(got));
  }
  return true;
}

} // namespace dg
