// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a training: saves behind its steps, what follows from one that fails, and which ones stay. Apart
// from the loop, which only says where it is.
#pragma once

#include "runtime/checkpoint/CheckpointSave.h"
#include "runtime/session/RankRun.h"
#include "runtime/session/Training.h"

#include <optional>
#include <string>

namespace dg::session {

/// Without a checkpoint directory it does nothing. All ranks call it alike, between steps.
class Saver {
public:
  Saver(const RankRun &run, const TrainingOptions &options) : run(run), options(options) {}

  /// Makes the folder. `state` is what the training begins with, `saved` the last checkpoint before it.
  Status begin(const checkpoint::TrainingState &state, const SavedCheckpoint &saved);
  bool isOn() const { return save.has_value(); }
  bool isInFlight() const { return isOn() && save->isInFlight(); }
  bool isSaved(int64_t step) const { return savedStep == step; }
  /// Memory of this rank for copies; 0 where saves come at the end only.
  uint64_t copyBytes() const;

  /// Saves `state` behind the steps that follow; first waits for the save before it. `again`: also where its step is
  /// saved already.
  Status saveBehind(const checkpoint::TrainingState &state, bool again);
  /// Saves `state` before it returns. Here a save that fails twice is a failure.
  Status saveAtOnce(const checkpoint::TrainingState &state, bool again);
  /// Asks after the save in flight, if it is time. Before every step.
  Status advance(int64_t step);
  /// Waits for the save in flight.
  Status settle();

  /// That the loss of `step` is finite: its parameters, those after the step before, are good, and what their
  /// checkpoint replaces may go (--keep).
  void hasGoodLoss(int64_t step);
  /// The last checkpoint; empty: none.
  const std::string &last() const { return lastPath; }
  /// For the message of a loss that is not finite and came from the parameters after `step`: the last checkpoint that
  /// is not of them.
  std::string describeGood(int64_t step) const;
  /// Whether the last failure began on another rank.
  bool hasPeerFailed() const { return isOn() && save->hasPeerFailed(); }

private:
  Status saveNow(const checkpoint::TrainingState &state, bool again, checkpoint::CheckpointSave::Pace pace);
  /// Turns of the save in flight, and what follows from its end.
  Status turn(bool wait, bool isLast);
  Status publish(const checkpoint::CheckpointSave::End &end);
  /// Removes what --keep does not keep, on rank 0; what fails is tried again after the next save.
  void prune();

  const RankRun &run;
  const TrainingOptions &options;
  std::optional<checkpoint::CheckpointSave> save;
  int64_t now = 0, savedStep = -1; ///< steps
  std::string lastPath, pathBefore;
  std::optional<int64_t> bestSaved;  ///< the step of the best checkpoint
  std::optional<int64_t> pruneAfter; ///< the step of a checkpoint whose parameters have not given a loss yet
  int64_t goodLoss = -1;             ///< the last step whose loss is finite
  int64_t numMissing = 0;            ///< saves in a row that failed
  bool isRetried = false;            ///< the save in flight
  double stallSeconds = 0;           ///< that steps have waited for it
};

} // namespace dg::session
