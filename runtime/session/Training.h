// SPDX-License-Identifier: Apache-2.0
// The training loop of one rank: epochs and steps, learning rate, evaluation, checkpoints, and the orderly stop. All
// ranks run the same loop over the same numbers; what differs is the share of the data that each is fed.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/order/SampleOrder.h"
#include "runtime/session/RankRun.h"
#include "runtime/session/rules/DealRule.h"
#include "runtime/session/rules/Improvement.h"
#include "runtime/session/rules/Interval.h"
#include "runtime/session/rules/LearningRate.h"

#include <chrono>
#include <optional>
#include <string>

namespace dg::session {

/// Checked and complete before the ranks exist.
struct TrainingOptions {
  int64_t epochs = 0, steps = 0; ///< counted from the very beginning of the training; one of them is above 0
  double learningRate = 0;
  LearningRateSchedule schedule;
  uint64_t seed = 0;
  data::Shuffle shuffle;
  bool dropLast = false;
  DealRule deal;                   ///< of micro-batches to replicas
  int64_t evalBatch = 0;           ///< 0: the program's
  std::string checkpointDirectory; ///< empty: none
  std::string checkpointRun;       ///< whose lock that folder has: checkpoint::FolderLock::run
  Interval checkpointEvery;
  Interval evalEvery = {.epochs = 1};
  Interval snapshotEvery;
  int64_t keep = 0;                                ///< the latest so many checkpoints stay; 0: all
  int64_t maxLost = 2;                             ///< so many saves in a row that fail end the run
  std::chrono::milliseconds savePatience{120'000}; ///< so long a disk may move nothing of a save
  std::optional<WatchedMetric> keepBest;           ///< the checkpoint of its best evaluation stays too
  std::optional<StopRule> stopWhen;
  double validation = 0;     ///< part of the data set that is held out
  bool allowNan = false;     ///< go on after a loss that is NaN or infinite
  int64_t checkReplicas = 0; ///< compare replicas every so many steps; 0: never
  uint32_t threads = 1;      ///< for the report
};

enum class Outcome { done, stopped };

/// Runs to the end of the options, or to the step at which the job is asked to stop; then, with a checkpoint directory,
/// the state is saved. Fails at the first loss that is not finite, unless that is allowed: on the rank that has the
/// loss, which the others then miss. `resume` (may be null) is where to begin; its tensors are restored here. Fails on
/// every rank that sees a failure; `hasPeerFailed` then says whether it came from another rank.
Result<Outcome> runTraining(const RankRun &run, const TrainingOptions &options, const data::Dataset &dataset,
                            const data::Dataset *evalDataset, const checkpoint::Checkpoint *resume,
                            bool &hasPeerFailed);

/// Whether the plan can be trained so on that many samples; the same check before ranks exist.
Status checkTraining(const plan::Plan &plan, const TrainingOptions &options, int64_t numSamples);

/// Steps of an epoch over that many samples.
int64_t stepsPerEpoch(const plan::Plan &plan, const TrainingOptions &options, int64_t numSamples);

/// Whether these options can continue that state: the same seed, and in the middle of an epoch the same data set and
/// shuffle.
Status checkResume(const checkpoint::TrainingState &state, const TrainingOptions &options, int64_t numSamples);

} // namespace dg::session
