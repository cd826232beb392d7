// SPDX-License-Identifier: Apache-2.0
// Passes a rank's output on, line by line, with the rank in front, so that lines of different ranks do not mix.
#pragma once

#include "runtime/launch/ranks/OutputQueue.h"

#include <deque>
#include <string>

namespace dg {

/// The last lines that a rank has written, for the report of its failure.
class LineHistory {
public:
  void add(std::string line);
  /// Newlines between and after.
  std::string text() const;

private:
  std::deque<std::string> lines;
};

/// Reads one pipe and passes whole lines on.
class OutputRelay {
public:
  /// Takes `source` and makes it non-blocking; `target` and `history` outlive it.
  OutputRelay(int source, OutputQueue &target, std::string prefix, LineHistory &history);
  OutputRelay(const OutputRelay &) = delete;
  ~OutputRelay();

  int descriptor() const { return source; }
  /// Whether the rank should wait until its lines have been read. It does when its pipe is full.
  bool isHeldUp() const { return target.isFull(); }
  /// Moves what is there now, so much at most that a rank which prints without end does not hold up the launcher. False
  /// at the end of the output, when a last line without its newline has been passed on too.
  bool move(size_t mostBytes = 65536);
  /// For a rank that has ended: all that its pipe holds, unless a process that it has left there goes on printing.
  bool moveRest() { return move(size_t(1) << 20); }

private:
  void pass(size_t bytes);
  int source;
  OutputQueue &target;
  std::string prefix, pending;
  LineHistory &history;
};

} // namespace dg
