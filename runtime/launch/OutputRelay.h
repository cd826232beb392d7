// SPDX-License-Identifier: Apache-2.0
// Passes a rank's output on, line by line, with the rank in front, so that lines of different ranks do not mix.
#pragma once

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

/// Reads one pipe and writes whole lines to a descriptor of the launcher.
class OutputRelay {
public:
  /// Takes `source` and makes it non-blocking; does not own `target`; `history` outlives it.
  OutputRelay(int source, int target, std::string prefix, LineHistory &history);
  OutputRelay(const OutputRelay &) = delete;
  ~OutputRelay();

  int descriptor() const { return source; }
  /// Moves what is there now. False at the end of the output, when a last line without its newline has been passed on
  /// too.
  bool move();

private:
  void pass(size_t bytes);
  int source, target;
  std::string prefix, pending;
  LineHistory &history;
};

} // namespace dg
