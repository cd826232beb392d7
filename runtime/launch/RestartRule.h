// SPDX-License-Identifier: Apache-2.0
// Whether ranks start anew after a failure, how often, and where they go on.
#pragma once

#include "runtime/launch/FailureReport.h"

#include <optional>
#include <string>

namespace dg {

/// The coordinator's. One thread.
class RestartRule {
public:
  explicit RestartRule(const LaunchOptions &options) : options(options) {}

  /// All ranks have their snapshot of that step whole: it is restored when they start anew.
  void noteWhole(int64_t step) { snapshot = step; }
  std::optional<int64_t> wholeSnapshot() const { return snapshot; }

  /// After a failure, when no rank is left: where they go on, or nothing where the job ends. `cause`: its sentence.
  std::optional<RestartPoint> next(const FailureReport &failure, const std::string &cause);

  /// "restart 2 of 3 goes on from the snapshot of step 50"
  std::string describe() const;
  int64_t number() const { return numRestarts; }
  /// The step after which ranks go on.
  int64_t step() const;
  int64_t generation() const { return point.generation; }

  /// Where ranks have started anew as often as they may: what comes before and after the sentence of the last failure,
  /// and the code of the first. Nothing otherwise.
  struct Loop {
    std::string first;
    int exitCode = 0;
  };
  std::optional<Loop> loop() const;

private:
  const LaunchOptions &options;
  RestartPoint point;
  std::optional<int64_t> snapshot;
  int64_t numRestarts = 0; ///< since `point` came further
  std::string firstCause;  ///< of the failures since then
  int firstExitCode = 0;
  bool isOver = false;
};

} // namespace dg
