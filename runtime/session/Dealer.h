// SPDX-License-Identifier: Apache-2.0
// Shares the micro-batches of a training among its replicas, as --deal says: measures, agrees and changes the shares
// between two steps, alike on all ranks.
#pragma once

#include "runtime/data/Feeder.h"
#include "runtime/session/RankRun.h"
#include "runtime/session/rules/DealRule.h"

#include <string>
#include <vector>

namespace dg::session {

/// With one replica it does nothing. One thread, that of the steps.
class Dealer {
public:
  Dealer(const RankRun &run, const DealRule &rule, data::Feeder &feeder);

  /// Before the first step, which comes after `step` steps of the training.
  Status begin(int64_t step);
  /// Tells the shares that a run begins with, where it is asked for others than even ones.
  void reportBegin(int64_t step) const;
  /// Before every step: whether the shares are others from now on, so that what the feeder reads ahead must be said
  /// anew. `isEpochsBegin`: an epoch is over, and it is time to measure. On failure `hasPeerFailed` says whether it
  /// came from another rank.
  Result<bool> redeal(int64_t step, bool isEpochsBegin, bool &hasPeerFailed);
  /// After every step.
  void hasRun();

private:
  Status dealTo(const Shares &next, int64_t step);
  /// How long each replica took for one of its micro-batches since the shares are as they are.
  Result<std::vector<double>> measure();
  void report(int64_t step, const std::vector<double> &microbatchUs) const;

  const RankRun &run;
  const DealRule &rule;
  data::Feeder &feeder;
  const size_t program;
  const bool isOn; ///< there are several replicas
  Shares shares;
  std::string repeat;        ///< what --deal takes to share them so again
  int64_t steps = 0;         ///< since begin
  int64_t stepsMeasured = 0; ///< with these shares
  double microbatchesUs = 0; ///< that this rank took in them
  std::vector<double> known; ///< that each replica takes for a micro-batch, by all measurements
};

} // namespace dg::session
