// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/RestartRule.h"

#include <algorithm>

namespace dg {

int64_t RestartRule::step() const {
  return std::max({point.snapshot.value_or(0), point.checkpoint.value_or(0), options.firstStep});
}

std::optional<RestartPoint> RestartRule::next(const FailureReport &failure, const std::string &cause) {
  if (options.maxRestarts == 0 || !failure.isPassing())
    return std::nullopt;
  const int64_t before = step();
  point.checkpoint = options.latestCheckpoint ? options.latestCheckpoint() : std::nullopt;
  const bool isSnapshotNewer = snapshot && (!point.checkpoint || *point.checkpoint <= *snapshot);
  point.snapshot = isSnapshotNewer ? snapshot : std::nullopt;
  if (!isSnapshotNewer)
    snapshot.reset(); // ranks may write over it
  if (numRestarts == 0 || step() > before) {
    numRestarts = 0;
    firstCause = cause, firstExitCode = failure.exitCode();
  }
  isOver = numRestarts == options.maxRestarts;
  if (isOver)
    return std::nullopt;
  ++numRestarts, ++point.generation;
  return point;
}

std::string RestartRule::describe() const {
  return fmt::format("restart {} of {} goes on from {}", numRestarts, options.maxRestarts,
                     point.snapshot     ? fmt::format("the snapshot of step {}", *point.snapshot)
                     : point.checkpoint ? fmt::format("the checkpoint of step {}", *point.checkpoint)
                                        : "where this run began");
}

std::optional<RestartRule::Loop> RestartRule::loop() const {
  if (!isOver)
    return std::nullopt;
  return Loop{fmt::format("\n  {} restart{} (--max-restarts) did not come to another snapshot or checkpoint; the first "
                          "failure since then: {}",
                          numRestarts, numRestarts == 1 ? "" : "s", firstCause),
              firstExitCode};
}

} // namespace dg
