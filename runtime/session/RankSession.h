// SPDX-License-Identifier: Apache-2.0
// A forked rank from its first line to its exit code: connect, load, run, report what failed.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/data/Dataset.h"
#include "runtime/device/host/HostDevice.h"
#include "runtime/launch/link/LaunchMessage.h"
#include "runtime/launch/link/RankContext.h"
#include "runtime/session/Evaluation.h"
#include "runtime/session/Inference.h"
#include "runtime/session/Job.h"
#include "runtime/session/Training.h"

#include <optional>

namespace dg::session {

/// All that was opened and checked before the ranks were forked.
struct Assignment {
  const Job *job = nullptr;
  DeviceMaker device = hostDeviceMaker;
  std::optional<data::Dataset> dataset, evalDataset;
  std::optional<checkpoint::Checkpoint> resume;
  std::optional<TrainingOptions> training; ///< one of the three
  std::optional<InferenceOptions> inference;
  std::optional<EvaluationOptions> evaluation;
  uint32_t threads = 1;
  int64_t ranksOnHost = 1;    ///< that share its cores
  uint64_t residentBytes = 0; ///< of dgrun before it opened anything
  data::PrefetchOptions readAhead;
  std::vector<std::string> dataNotes; ///< what was left out of the data sets
  uint64_t seed = 0;
  std::chrono::milliseconds timeout{30'000};
  std::string tracePath; ///< empty: none
  bool profile = false;
  bool json = false;
  std::optional<LogPace> logEvery; ///< lines of steps for people; nothing: every 10 s where there is no terminal
  LogPace jsonEvery;
  std::string parameterTable; ///< of --json: Job::parameterTable
  std::string logDirectory;   ///< of TensorBoard's event files; empty: none
  bool checkNumerics = false;
  bool dryRun = false; ///< only see whether ranks reach each other
  int64_t maxRestarts = 0;
  RestartPoint restart;                 ///< what ranks that start anew go on from
  std::optional<SavedCheckpoint> saved; ///< where they do
};

/// The plan that the run begins with: of several sizes the smallest that holds all samples, else the job's own.
const plan::Plan &planOf(const Assignment &assignment);
/// Bytes of one snapshot of that rank; 0 where none is taken.
uint64_t snapshotBytes(const Assignment &assignment, int64_t rank);
/// The step of the latest checkpoint that this training has written.
std::optional<int64_t> latestCheckpoint(const Assignment &assignment);
/// Makes `point` what the ranks that are forked next go on from. Fails where its checkpoint cannot be read.
Status restartAt(Assignment &assignment, const RestartPoint &point);

/// Returns the rank's exit code: 0 done, 75 stopped with a checkpoint, 143 stopped without, else that of the failure.
int runRank(RankContext &context, const Assignment &assignment);

/// Removes the results, the trace and the checkpoint that ranks have left half-written because they were ended in the
/// middle. For each launcher, after a run that failed or was stopped, when none of its ranks is alive; `hadRankZero`
/// says whether rank 0, which names and removes checkpoints, was one of them.
void removeUnfinished(const Assignment &assignment, bool hadRankZero);

} // namespace dg::session
