// SPDX-License-Identifier: Apache-2.0
// Reading a checkpoint: global tensors by name, of which each rank of any plan takes its own slice.
//
//   DIR/step-000123/model.safetensors   parameters and optimizer state, whole tensors
//   DIR/step-000123/manifest.json       where the run stood, hash of the tensors
//   DIR/step-000200.partial/            being written, or left by a run that died; never read
//   DIR/step-000123.replaced/           the one of that step, where a run died between the two renames of its successor
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/device/ValueAccess.h"
#include "runtime/package/MappedFile.h"
#include "runtime/package/Safetensors.h"
#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace dg::checkpoint {

/// What the plan that reads is for. Training refuses a checkpoint with tensors that the plan does not know, so that no
/// optimizer state is lost silently; inference takes the parameters and leaves the rest.
enum class Purpose { training, inference };

/// What becomes of a latest checkpoint that cannot be read: the run is refused, or the one before it is taken and
/// Checkpoint::passedOver says so (--resume-older).
enum class Unreadable { refuse, passOver };

/// A checkpoint that was asked for and could not be read.
struct PassedOver {
  int64_t step = 0;
  std::string folder, reason;
};

/// A checkpoint whose manifest and tensors passed every check. Immutable; processes forked later share its mapping.
class Checkpoint {
public:
  /// `path` is a checkpoint (DIR/step-000123) or a folder of them, of which the latest by name is taken. Reads the
  /// whole file once to verify its hash. Fails with badInput, naming what cannot be read.
  static Result<Checkpoint> open(const std::string &path, Unreadable unreadable = Unreadable::refuse);

  /// That of one step of a folder, which its manifest must be of.
  static Result<Checkpoint> openStep(const std::string &directory, int64_t step);

  const TrainingState &state() const { return manifest.state; }
  uint64_t bytes() const { return manifest.fileBytes; } ///< of its tensors
  size_t numTensors() const { return tensors.tensors().size(); }
  const std::string &path() const { return folder; }
  const package::Safetensors &all() const { return tensors; }
  /// Those of later steps that could not be read, the latest first. Empty without Unreadable::passOver.
  const std::vector<PassedOver> &passedOver() const { return unread; }

  /// Whether every parameter and state of the plan is here with its type and shape, and nothing is left over
  /// (training). Fails with badInput and the name of the first tensor that is missing, different or left over.
  Status check(const plan::Plan &plan, Purpose purpose) const;

  /// Copies this rank's slices into place; padding becomes zero. Call check first.
  Status restore(const plan::Plan &plan, plan::Coordinates at, ValueAccess &values) const;

private:
  friend Result<Checkpoint> continueIn(const std::string &directory, Checkpoint from, Unreadable unreadable);
  static Result<Checkpoint> openOne(const std::string &folder);
  static Result<Checkpoint> openLatest(const std::string &directory, Unreadable unreadable);
  std::vector<PassedOver> unread;
  Manifest manifest;
  std::string folder;
  package::MappedFile file;
  package::Safetensors tensors;
};

/// Where a training that is to go on in `directory` begins. That is `from`, except where a run that began there has
/// written later checkpoints into `directory` already: then the same command was started again, and the latest of these
/// is taken, as Checkpoint::open takes it. Fails with usage if `directory` holds checkpoints of later steps that do not
/// continue `from`: the run would replace them one by one, and until then the latest would be another training's.
Result<Checkpoint> continueIn(const std::string &directory, Checkpoint from, Unreadable unreadable);

/// What `dgrun --verify` says of one checkpoint.
struct Verified {
  std::string folder;
  Status status = Status::ok(); ///< what is wrong with it
  int64_t step = 0;
  uint64_t bytes = 0;
  size_t numTensors = 0;
};

/// Reads the checkpoint, or every one of a folder, to its last byte, and compares it with `plan` unless that is null.
/// Changes nothing; one that a run removes meanwhile is left out. Fails (badInput) where there is none.
Result<std::vector<Verified>> verify(const std::string &path, const plan::Plan *plan, Purpose purpose);

/// The manifest of the checkpoint in `folder`. Fails with badInput.
Result<Manifest> readManifest(const std::string &folder);

/// The steps that have a whole manifest in `directory`, ascending; empty if there is no such folder.
std::vector<int64_t> stepsIn(const std::string &directory);

/// The steps that have a folder in `directory`, ascending, whether it can be read or not.
std::vector<int64_t> namedStepsIn(const std::string &directory);

/// Whether a training could begin in `directory`: it is missing, or nothing in it has a checkpoint's name, damaged ones
/// included.
bool isUnused(const std::string &directory);

/// Gives the folder of a checkpoint that was passed over another name (….damaged), so that it is neither the latest nor
/// counted among those that stay. For who holds the folder's lock. Fails with runFailed.
Status setAside(const PassedOver &damaged);

/// "step-000123".
std::string nameOfStep(int64_t step);
/// What nameOfStep has after it while it is written, or removed.
inline constexpr const char *partialSuffix = ".partial";
/// While its successor takes its place, on a file system that cannot exchange two names.
inline constexpr std::string_view replacedSuffix = ".replaced";

/// The parameters and states of a plan, each global tensor once, as the file holds them; `ids` are the first values of
/// that name.
struct CheckpointTensors {
  std::vector<package::TensorSpec> specs;
  std::vector<plan::ValueId> ids;
};
CheckpointTensors tensorsOf(const plan::Plan &plan);

} // namespace dg::checkpoint
