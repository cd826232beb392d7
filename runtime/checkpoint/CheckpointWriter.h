// SPDX-License-Identifier: Apache-2.0
// The parts of writing a checkpoint, which CheckpointSave puts together: rank 0 reserves the whole file, every rank
// puts its shards at their place and hashes them, rank 0 compares the hashes with what it reads, writes the manifest
// and renames. Until the rename the checkpoint does not exist, so that a full disk or a kill leaves what was there
// before.
#pragma once

#include "runtime/checkpoint/Checkpoint.h"
#include "runtime/checkpoint/FolderLock.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dg::checkpoint {

/// Meets all ranks: returns ok if everyone came with ok, else the failure of the lowest rank that failed.
using Agreement = std::function<Status(const Status &mine)>;

/// Removes what rank 0 makes in DIRECTORY and removes again, where a run ended before it could: the file by which ranks
/// see whether they share the folder, a checkpoint that was being written, one whose successor has its name. One that
/// has lost its name to no successor gets it back. Call it with the folder's lock, when no rank 0 is alive.
void removeUnfinished(const std::string &directory);

/// Whether what steps write of the plan's parameters and state is finite on this rank. Fails (runFailed), naming `step`
/// and the tensor.
Status checkFinite(const plan::Plan &plan, plan::Coordinates at, const ValueAccess &values, int64_t step);

struct ShardRun;

/// Immutable: one thread may write a checkpoint while another asks for what the next one needs.
class CheckpointWriter {
public:
  /// Lays out the file; every rank calls it at the same time. `plan` outlives the writer. Rank 0 makes the folder
  /// DIRECTORY; fails (usage) on every rank if one cannot write there or does not see what rank 0 writes.
  /// `allowNan`: tensors that a step has filled with NaN or infinity are written, not refused. `run`: whose lock the
  /// folder must have when a checkpoint gets its name (FolderLock); empty: it needs none.
  static Result<CheckpointWriter> create(const plan::Plan &plan, int64_t rank, const std::string &directory,
                                         const Agreement &agree, bool allowNan, const std::string &run = "");

  /// DIRECTORY/step-<step>.
  std::string pathOf(int64_t step) const;
  /// The values of which this rank writes its shards.
  std::vector<plan::ValueId> ownValues() const;

  /// Rank 0, first: makes the whole file, with its header. Fails (runFailed) with file, cause and bytes needed.
  Status reserve(int64_t step) const;
  /// Whether what steps have written of this rank's shards is finite. Fails (runFailed).
  Status checkFinite(int64_t step, const ValueAccess &from) const;
  /// Every rank, once the file is there: writes its shards and synchronises. Returns their hash, taken from memory.
  /// Fails (runFailed), also when `isCancelled` becomes true.
  Result<std::string> writeShards(int64_t step, const ValueAccess &from, const std::atomic<bool> &isCancelled) const;
  /// Rank 0, once all have written: reads the file back from the disk, compares it with the hashes (by rank), and
  /// writes the manifest. Fails (runFailed) and names the rank whose bytes are others than it wrote.
  Status prove(const TrainingState &state, const std::vector<std::string> &hashes) const;
  /// Rank 0, at the end: gives the checkpoint its name.
  Status publish(int64_t step) const;
  /// Rank 0, after a failure: nothing is left of what reserve made.
  void discard(int64_t step) const;

  /// Grows whenever a call on the disk has come back.
  uint64_t moved() const { return *moves; }
  /// Whether the folder is still this run's: ask before anything there is renamed or removed.
  Status checkOwner() const { return run.empty() ? Status::ok() : checkFence(directory, run); }

private:
  CheckpointWriter() = default;
  std::string partialOf(int64_t step) const;
  /// Calls `use` with each piece of the file that the rank at `of` writes: tensor, its run. In the order of the file.
  Status forEachRun(plan::Coordinates of, const std::function<Status(size_t, const ShardRun &)> &use) const;
  const plan::Plan *plan = nullptr;
  int64_t rank = 0;
  plan::Coordinates at;
  std::string directory, run;
  CheckpointTensors tensors;
  std::vector<bool> mustBeFinite; ///< by tensor
  std::shared_ptr<std::atomic<uint64_t>> moves = std::make_shared<std::atomic<uint64_t>>(0);
  package::SafetensorsLayout layout;
};

} // namespace dg::checkpoint
