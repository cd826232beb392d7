// SPDX-License-Identifier: Apache-2.0
// The snapshots of a training: when one is taken, and what a rank that starts anew finds in memory. Apart from the
// loop, which only says where it is.
#pragma once

#include "runtime/checkpoint/Snapshot.h"
#include "runtime/session/RankRun.h"

#include <optional>

namespace dg::session {

/// Without memory for snapshots it does nothing. All ranks call it alike, between steps.
class Snapshotter {
public:
  explicit Snapshotter(const RankRun &run) : run(run) {}

  /// Fills the values and gives the state of the snapshot that this rank goes on from; nothing: of none.
  Result<std::optional<checkpoint::TrainingState>> restore();
  /// Whether one is to be taken now, after `step`. One that is due while checkpoints are being saved is taken after
  /// that: a restart from it then finds them saved.
  bool isTime(int64_t step, bool isDue, bool isSaving);
  /// Copies the values and `state`, once all ranks have the snapshot before it whole: until then the one before that is
  /// needed.
  Status take(const checkpoint::TrainingState &state);
  /// Whether the last failure began on another rank.
  bool hasPeerFailed() const { return isPeers; }

private:
  const RankRun &run;
  std::optional<int64_t> last; ///< the step of the latest that this rank has
  bool isPending = false, isPeers = false;
};

} // namespace dg::session
