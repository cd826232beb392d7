// SPDX-License-Identifier: Apache-2.0
// What the loops need from the rank they run in. Plain references and functions, so that tests can run ranks as
// threads.
#pragma once

#include "runtime/checkpoint/CheckpointSave.h"
#include "runtime/checkpoint/Snapshot.h"
#include "runtime/data/Prefetch.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/ProgressBoard.h"
#include "runtime/session/report/MemoryUse.h"
#include "runtime/session/report/Reporter.h"
#include "runtime/session/report/TraceRecorder.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace dg::session {

/// Where a rank's snapshots are, and how it agrees on them with the others.
struct SnapshotPlace {
  checkpoint::RankSnapshots *memory = nullptr;
  std::optional<int64_t> from;                   ///< the step of the snapshot that the rank goes on from
  std::function<void(int64_t step)> report;      ///< says that this rank has that one whole
  std::function<std::optional<int64_t>()> whole; ///< the latest that all ranks have whole
};

/// The last checkpoint of a training that is continued.
struct SavedCheckpoint {
  int64_t step = -1;
  std::string path;
};

struct RankRun {
  RankRun(const plan::Plan &plan, int64_t rank, Executor &executor, Reporter &reporter)
      : plan(plan), rank(rank), executor(executor), reporter(reporter) {}

  const plan::Plan &plan;
  int64_t rank;
  Executor &executor;
  Reporter &reporter;             ///< silent on all ranks but 0
  Transport *transport = nullptr; ///< null: one rank
  checkpoint::Agreement agree;
  /// For saves: waits as long as a disk may take.
  checkpoint::Exchange exchange;
  /// Everyone's bytes, by rank; all ranks call it alike. Needed by checkReplicas and evaluations.
  std::function<Result<std::vector<std::string>>(const std::string &mine)> gather;
  /// Asked before each step of a training and of its evaluations, from 1; false on all ranks before the same step once
  /// the job was asked to stop.
  std::function<bool(uint64_t)> mayStartStep;
  /// Asked after that, of the same step: whether the job was asked to save there and to go on. May be empty.
  std::function<bool(uint64_t)> isSaveDue;
  std::optional<SnapshotPlace> snapshots;
  std::optional<SavedCheckpoint> saved; ///< where it is not the one that the training begins with
  ProgressLine *progress = nullptr;     ///< may be null
  TraceRecorder *trace = nullptr;       ///< may be null
  std::chrono::milliseconds timeout{30'000};
  data::PrefetchOptions readAhead;
  std::string target;         ///< of the kernels, for the report
  uint64_t residentBytes = 0; ///< of the process when it started, for the report

  plan::Coordinates at() const { return plan.mesh.coordinatesOf(rank); }
  /// Memory that the process took at most since it started.
  uint64_t peakBytes() const {
    uint64_t peak = peakResidentBytes();
    return peak > residentBytes ? peak - residentBytes : 0;
  }
  void setPhase(RankPhase phase) const {
    if (progress)
      progress->phase.store(uint32_t(phase), std::memory_order_relaxed);
  }
};

} // namespace dg::session
