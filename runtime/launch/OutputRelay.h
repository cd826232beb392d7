// SPDX-License-Identifier: Apache-2.0
// Passes a rank's output on, line by line, with the rank in front, so that lines of different ranks do not mix.
#pragma once

#include <string>

namespace dg {

/// Reads one pipe and writes whole lines to a descriptor of the launcher.
class OutputRelay {
public:
  /// Takes `source` and makes it non-blocking; does not own `target`.
  OutputRelay(int source, int target, std::string prefix);
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
};

} // namespace dg
