// SPDX-License-Identifier: Apache-2.0
// Line buffering between a pipe and the launcher's own output.
#include "runtime/launch/ranks/OutputRelay.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace dg {
namespace {

constexpr size_t longestLine = 65536;
constexpr size_t keptLines = 20, keptBytesOfLine = 500;

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

OutputRelay::OutputRelay(int source, OutputQueue &target, std::string prefix, LineHistory &history)
    : source(source), target(target), prefix(std::move(prefix)), history(history) {
  fcntl(source, F_SETFL, fcntl(source, F_GETFL) | O_NONBLOCK);
}

OutputRelay::~OutputRelay() {
  pass(pending.size());
  close(source);
}

bool OutputRelay::move(size_t mostBytes) {
  char bytes[16384];
  while (mostBytes > 0) {
    ssize_t got = read(source, bytes, std::min(sizeof bytes, mostBytes));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return errno == EAGAIN;
    if (got == 0) {
      pass(pending.size());
      return false;
    }
    mostBytes -= size_t(got);
    pending.append(bytes, size_t(got));
    size_t whole = pending.rfind('\n') + 1; // npos + 1 is 0
    pass(pending.size() - whole > longestLine ? pending.size() : whole);
  }
  return true;
}

/// Passes on the beginning of what is pending, as lines.
void OutputRelay::pass(size_t bytes) {
  std::string lines;
  for (size_t at = 0, end; at < bytes; at = end) {
    end = std::min(pending.find('\n', at), bytes - 1) + 1;
    std::string_view line = std::string_view(pending).substr(at, end - at);
    lines.append(prefix).append(line);
    if (line.back() != '\n')
      lines += '\n';
    history.add(std::string(line));
  }
  pending.erase(0, bytes);
  if (!lines.empty())
    target.add(lines);
}

} // namespace dg
