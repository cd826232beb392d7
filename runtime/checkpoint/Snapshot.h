// SPDX-License-Identifier: Apache-2.0
// A rank's parameters, optimizer state and place in the training, copied between two steps to memory that outlives the
// rank. Where a checkpoint holds global tensors for any plan, a snapshot holds what one rank of one plan has.
//
//   region │ step + 1 │ length of the manifest │ manifest: state, hash of the values │ values, in the plan's order │
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/device/ValueAccess.h"
#include "runtime/plan/Plan.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace dg::checkpoint {

/// Two regions, so that one snapshot is whole while the other is written. One thread.
class RankSnapshots {
public:
  /// Bytes of one region.
  static uint64_t bytesNeeded(const plan::Plan &plan, plan::Coordinates at);

  /// The regions outlive it; zeros are no snapshot.
  RankSnapshots(const plan::Plan &plan, plan::Coordinates at, std::array<std::span<std::byte>, 2> regions);

  /// Copies state and values into the region that does not hold the snapshot of step `kept`. Whoever is killed
  /// meanwhile leaves that region without a snapshot. Fails (runFailed) where the state does not fit.
  Status take(const TrainingState &state, const ValueAccess &values, std::optional<int64_t> kept);
  /// Fills the values. Fails (runFailed) where there is no such snapshot, or it is not as it was written.
  Result<TrainingState> restore(int64_t step, ValueAccess &values) const;

private:
  struct Head {
    std::atomic<uint64_t> stepAndOne; ///< 0: no snapshot, or one that is being written
    std::atomic<uint64_t> textBytes;
  };
  static Head &headOf(std::span<std::byte> region) { return *reinterpret_cast<Head *>(region.data()); }
  std::array<std::span<std::byte>, 2> regions;
  std::vector<plan::ValueId> ids;
};

} // namespace dg::checkpoint
