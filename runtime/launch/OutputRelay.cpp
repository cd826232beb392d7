// SPDX-License-Identifier: Apache-2.0
// Line buffering between a pipe and the launcher's own output.
#include "runtime/launch/OutputRelay.h"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace dg {
namespace {

constexpr size_t longestLine = 65536;
constexpr size_t keptLines = 20, keptBytesOfLine = 500;

/// Waits for a slow reader; gives up when there is none.
void writeAll(int target, const std::string &text) {
  for (size_t at = 0; at < text.size();) {
    ssize_t written = write(target, text.data() + at, text.size() - at);
    if (written >= 0) {
      at += size_t(written);
    } else if (errno == EAGAIN) {
      pollfd entry = {target, POLLOUT, 0};
      poll(&entry, 1, 1000);
    } else if (errno != EINTR) {
      return;
    }
  }
}

} // namespace

void LineHistory::add(std::string line) {
  while (!line.empty() && line.back() == '\n')
    line.pop_back();
  if (line.size() > keptBytesOfLine)
    line = line.substr(0, keptBytesOfLine) + "…";
  if (lines.size() == keptLines)
    lines.pop_front();
  lines.push_back(std::move(line));
}

std::string LineHistory::text() const {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

OutputRelay::OutputRelay(int source, int target, std::string prefix, LineHistory &history)
    : source(source), target(target), prefix(std::move(prefix)), history(history) {
  fcntl(source, F_SETFL, fcntl(source, F_GETFL) | O_NONBLOCK);
}

OutputRelay::~OutputRelay() {
  pass(pending.size());
  close(source);
}

bool OutputRelay::move() {
  char bytes[16384];
  while (true) {
    ssize_t got = read(source, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return errno == EAGAIN;
    if (got == 0) {
      pass(pending.size());
      return false;
    }
    pending.append(bytes, size_t(got));
    for (size_t end; (end = pending.find('\n')) != std::string::npos;)
      pass(end + 1);
    if (pending.size() > longestLine)
      pass(pending.size());
  }
}

void OutputRelay::pass(size_t bytes) {
  if (bytes == 0)
    return;
  std::string line = prefix + pending.substr(0, bytes);
  if (line.back() != '\n')
    line += '\n';
  writeAll(target, line);
  history.add(pending.substr(0, bytes));
  pending.erase(0, bytes);
}

} // namespace dg
