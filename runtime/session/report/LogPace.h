// SPDX-License-Identifier: Apache-2.0
// How often a run tells of its steps: --log-every and --json-every.
#pragma once

#include "runtime/support/Status.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace dg::session {

/// "10s" or "100steps". One thread.
class LogPace {
public:
  using Clock = std::chrono::steady_clock;
  LogPace() = default; ///< always due
  static LogPace everySeconds(double seconds) { return LogPace(seconds, 0); }
  /// Fails (usage), naming `flag`, on anything else.
  static Result<LogPace> parse(const char *flag, const std::string &text);
  /// Whether step `step` (from 1) is to be told; by time, the first so long after the start.
  bool isDue(int64_t step, Clock::time_point now = Clock::now()) {
    if (steps > 0)
      return step % steps == 0;
    if (now - last < interval)
      return false;
    last = now;
    return true;
  }

private:
  LogPace(double seconds, int64_t steps)
      : interval(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))), steps(steps),
        last(Clock::now()) {}
  Clock::duration interval{};
  int64_t steps = 0;
  Clock::time_point last{};
};

} // namespace dg::session
