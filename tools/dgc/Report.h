// SPDX-License-Identifier: Apache-2.0
// What dgc says on stderr while it compiles.
#pragma once

#include "compiler/Compile.h"

#include <chrono>
#include <string>

namespace dg::tools {

/// Prints messages as they are said. Progress is shown on a terminal once a compilation takes more than two seconds, as
/// a line that is written over; in a file it would say nothing to anybody.
class Report {
public:
  Report();
  void print(const compiler::Message &message);
  /// --timing: a line for each phase.
  void printPhases(const std::vector<compiler::Phase> &phases);

private:
  void showProgress(const std::string &text);
  void clearProgress();
  using Clock = std::chrono::steady_clock;
  Clock::time_point started = Clock::now();
  bool isTerminal, isShown = false;
};

} // namespace dg::tools
