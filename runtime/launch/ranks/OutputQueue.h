// SPDX-License-Identifier: Apache-2.0
// Text on its way to stdout or stderr of the launcher, whose reader may be slow or stopped (Ctrl-S, a pager): the loop
// never waits for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace dg {

/// One thread. Opens nothing before the first text, so that a process forked before has nothing to close.
class OutputQueue {
public:
  explicit OutputQueue(int target) : target(target) {}
  OutputQueue(const OutputQueue &) = delete;
  ~OutputQueue();

  /// Takes the text and writes what is possible now.
  void add(std::string_view text);
  /// Writes what is possible now.
  void flush();
  bool hasOutput() const { return !waiting.empty(); }
  /// Whether who feeds it should wait. That is asked, not enforced: last words are taken all the same.
  bool isFull() const { return waiting.size() >= mostWaiting; }
  /// To wait for POLLOUT when there is output.
  int descriptor() const { return writable; }
  /// Writes all, for that long at most. Returns how many bytes could not be written; they are gone.
  size_t drain(std::chrono::milliseconds time);

private:
  enum class Way { unknown, direct, nonBlocking, socket, polled };
  void chooseWay();
  long writeSome(const char *text, size_t bytes);

  static constexpr size_t mostWaiting = size_t(1) << 18;
  const int target;
  int writable = -1; ///< `target`, or the same file opened again
  Way way = Way::unknown;
  std::string waiting;
};

} // namespace dg
