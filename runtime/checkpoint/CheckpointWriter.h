// SPDX-License-Identifier: Apache-2.0
// Writing a checkpoint, by all ranks together: rank 0 reserves the whole file, every rank puts its shards at their
// place, rank 0 hashes, writes the manifest and renames. Until the rename the checkpoint does not exist, so that a full
// disk or a kill leaves what was there before.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/FolderLock.h"

#include <functional>
#include <string>

namespace dg::checkpoint {

/// Meets all ranks: returns ok if everyone came with ok, else the failure of the lowest rank that failed.
using Agreement = std::function<Status(const Status &mine)>;

/// Removes what rank 0 makes in DIRECTORY and removes again, where a run ended before it could: the file by which ranks
/// see whether they share the folder, and a checkpoint that was being written. Call it when rank 0 is no more, with the
/// folder's lock.
void removeUnfinished(const std::string &directory);

/// Whether what steps write of the plan's parameters and state is finite on this rank. Fails (runFailed), naming `step`
/// and the tensor.
Status checkFinite(const plan::Plan &plan, plan::Coordinates at, const ValueAccess &values, int64_t step);

class CheckpointWriter {
public:
  /// Lays out the file; every rank calls it at the same time. `plan` and `values` outlive the writer. Rank 0 makes the
  /// folder DIRECTORY; fails (usage) on every rank if one cannot write there or does not see what rank 0 writes.
  /// `allowNan`: tensors that a step has filled with NaN or infinity are written, not refused. `run`: whose lock the
  /// folder must have when a checkpoint gets its name (FolderLock); empty: it needs none.
  static Result<CheckpointWriter> create(const plan::Plan &plan, int64_t rank, const std::string &directory,
                                         const ValueAccess &values, Agreement agree, bool allowNan,
                                         const std::string &run = "");

  /// Writes DIRECTORY/step-<state.step>; every rank calls it between the same two steps. Returns its path. Fails
  /// (runFailed) on every rank if it fails on one, with file, cause and bytes needed; then nothing is left of it.
  Result<std::string> write(const TrainingState &state);

  /// Whether the folder is still this run's: ask before anything else there is renamed or removed.
  Status checkOwner() const { return run.empty() ? Status::ok() : checkFence(directory, run); }

private:
  CheckpointWriter() = default;
  Status reserve(const std::string &partial) const;
  Status writeShards(const std::string &partial, int64_t step) const;
  Status finish(const std::string &partial, const std::string &final, const TrainingState &state) const;
  const plan::Plan *plan = nullptr;
  int64_t rank = 0;
  plan::Coordinates at;
  std::string directory, run;
  const ValueAccess *values = nullptr;
  Agreement agree;
  CheckpointTensors tensors;
  std::vector<bool> mustBeFinite; ///< by tensor
  package::SafetensorsLayout layout;
};

} // namespace dg::checkpoint
