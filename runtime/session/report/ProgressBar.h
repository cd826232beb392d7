// SPDX-License-Identifier: Apache-2.0
// Where a training stands, in one line: how far it is, how fast, and how long it will take. As a bar for a terminal of
// any width, or as a line of a log.
#pragma once

#include "runtime/session/report/Reporter.h"

#include <chrono>
#include <string>

namespace dg::session {

/// One thread; does not allocate but for the text that it returns.
class RunProgress {
public:
  using Clock = std::chrono::steady_clock;
  void start(const StartInfo &info, Clock::time_point now = Clock::now());
  void step(const StepInfo &info);

  /// "epoch 2/10 [=====     ] 120/938  loss 0.1234  lr 0.001  5210 samples/s  0:34 left", at most `columns` characters:
  /// what does not fit is left out from the right, then the bar gets shorter.
  std::string bar(size_t columns, Clock::time_point now = Clock::now()) const;
  /// "  step 1200/9380 (epoch 2/10)  loss 0.123400  lr 0.001  5210 samples/s  1:23 left".
  std::string line(Clock::time_point now = Clock::now()) const;

private:
  std::string rates(Clock::time_point now, bool isShort) const;
  StartInfo begun;
  StepInfo last;
  Clock::time_point started;
  int64_t steps = 0, samples = 0; ///< of this process
};

} // namespace dg::session
