// SPDX-License-Identifier: Apache-2.0
// What the coordinator of a job knows of one rank, wherever it runs.
#pragma once

#include "runtime/launch/link/LaunchMessage.h"

#include <chrono>
#include <deque>
#include <optional>

namespace dg {

struct RankState {
  using Time = std::chrono::steady_clock::time_point;

  RankProgress progress;
  std::string host;
  bool isAlive = true, hasReported = false;
  std::optional<int64_t> snapshot; ///< the step of the last that is whole
  bool isLost = false;             ///< with its launcher: what became of it is not known
  int exitCode = 0;                ///< when ended
  std::deque<std::string> parts;   ///< of exchanges that wait for other ranks
  std::string lastLines;           ///< of its output, once it has ended
  Time seenAt = {};                ///< when its progress was last told
  Time changedAt = {};             ///< when that last was something new
  Time steppedAt = {};             ///< when its step last changed
  Time waitsSince = {};            ///< for others, at one place; Time(): it does not

  std::chrono::duration<double> stuckFor() const { return seenAt - changedAt; }
  bool isWaiting() const { return progress.waitingFor != 0 || !parts.empty(); }
};

} // namespace dg
