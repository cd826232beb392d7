// SPDX-License-Identifier: Apache-2.0
// O_NONBLOCK belongs to the open file, which the launcher shares with its ranks and with the shell that started it. So
// it is never set there: a pipe or terminal is opened once more, a socket is told with each call.
#include "runtime/launch/ranks/OutputQueue.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dg {

OutputQueue::~OutputQueue() {
  if (way == Way::nonBlocking)
    close(writable);
}

void OutputQueue::chooseWay() {
  writable = target;
  struct stat file = {};
  if (fstat(target, &file) != 0 || !(S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode) || isatty(target))) {
    way = Way::direct; // a file has no reader to wait for, and its place is shared with rank 0
  } else if (S_ISSOCK(file.st_mode)) {
    way = Way::socket;
  } else {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", target);
    int again = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    way = again >= 0 ? Way::nonBlocking : Way::polled;
    if (again >= 0)
      writable = again;
  }
}

long OutputQueue::writeSome(const char *text, size_t bytes) {
  if (way == Way::socket)
    return send(writable, text, bytes, MSG_DONTWAIT);
  // Another user's pipe cannot be opened again. What poll lets through then fits, unless rank 0 is faster.
  pollfd entry = {writable, POLLOUT, 0};
  if (way == Way::polled && poll(&entry, 1, 0) == 0) {
    errno = EAGAIN;
    return -1;
  }
  return write(writable, text, bytes);
}

void OutputQueue::add(std::string_view text) {
  bool isIdle = waiting.empty();
  waiting += text;
  if (isIdle)
    flush();
}

void OutputQueue::flush() {
  if (way == Way::unknown)
    chooseWay();
  size_t done = 0;
  while (done < waiting.size()) {
    // A pipe takes up to PIPE_BUF bytes in one piece: whole lines, so that lines of rank 0 do not fall between.
    size_t bytes = std::min<size_t>(waiting.size() - done, PIPE_BUF);
    if (size_t last = std::string_view(waiting).substr(done, bytes).rfind('\n'); last != std::string::npos)
      bytes = last + 1;
    ssize_t written = writeSome(waiting.data() + done, bytes);
    if (written > 0) {
      done += size_t(written);
    } else if (written == 0 || errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      done = waiting.size(); // nobody will ever read it
    }
  }
  waiting.erase(0, done);
}

size_t OutputQueue::drain(std::chrono::milliseconds time) {
  auto limit = std::chrono::steady_clock::now() + time;
  flush();
  while (hasOutput()) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - std::chrono::steady_clock::now());
    if (left.count() <= 0)
      break;
    pollfd entry = {writable, POLLOUT, 0};
    poll(&entry, 1, int(std::min<long>(left.count(), 1000)));
    flush();
  }
  size_t lost = waiting.size();
  waiting.clear();
  return lost;
}

} // namespace dg
