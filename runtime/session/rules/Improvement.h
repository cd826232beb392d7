// SPDX-License-Identifier: Apache-2.0
// What evaluations decide: whether a metric has become better (--keep-best) and when to stop (--stop-when). What is
// remembered between evaluations lies in the training's state, which checkpoints keep.
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/session/report/Reporter.h"

#include <optional>
#include <string>

namespace dg::session {

/// A number of an evaluation by its name, as flags give it: eval.loss, eval.accuracy.
struct WatchedMetric {
  std::string name; ///< without "eval."
  bool isLowerBetter = true;

  /// Fails (usage), naming `flag`, on a name that no evaluation has.
  static Result<WatchedMetric> parse(const char *flag, const std::string &text);
  /// Whether a program "eval" of the plan computes it; fails (usage), naming `flag`.
  Status check(const char *flag, const plan::Plan &plan) const;
  /// Notes an evaluation. True if it is better than all before it by more than `least`.
  bool observe(const EvaluationInfo &info, double least, std::optional<checkpoint::Best> &best) const;
};

/// --stop-when eval.loss:patience=5[,min_delta=0.001]: the training ends once so many evaluations in a row were no
/// better than the best.
struct StopRule {
  WatchedMetric metric;
  int64_t patience = 0;
  double least = 0;
  std::string text;

  static Result<StopRule> parse(const std::string &text);
  bool isOver(const std::optional<checkpoint::Best> &best) const { return best && best->since >= patience; }
  /// "eval.loss has not fallen for 5 evaluations; the best was 0.25 at step 120".
  std::string describe(const checkpoint::Best &best) const;
};

} // namespace dg::session
