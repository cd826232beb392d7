// SPDX-License-Identifier: Apache-2.0
// What a rank knows of its job and how it talks to the launcher: small exchanges before the transport exists, its line
// on the progress board, its failures, and the request to stop.
#pragma once

#include "runtime/executor/ProgressBoard.h"
#include "runtime/support/Sha256.h"
#include "runtime/support/Status.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dg {

class ControlSocket;
class SharedBoard;
struct RankPlacement;
class KeptMemory;

using Deadline = std::chrono::steady_clock::time_point;
inline Deadline deadlineIn(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

/// Whether a failure began in this rank or only reached it ("waited for rank 0"): the launcher shows the first that
/// began.
enum class FailureOrigin : uint32_t { own, peer };

/// One rank's view of the launch. One thread at a time, except board() and isShutdownRequested(), which any thread may
/// call.
class RankContext {
public:
  /// `localIndex` counts the ranks of this launcher. The references outlive the context.
  /// `kept` is null where ranks do not start anew.
  RankContext(int64_t localIndex, const RankPlacement &placement, SharedBoard &board,
              std::unique_ptr<ControlSocket> socket, std::vector<Digest> keys = {}, KeptMemory *kept = nullptr);
  ~RankContext();

  int64_t rank() const { return self; }
  int64_t numRanks() const;
  /// Where this rank stands among the hosts of the job.
  const RankPlacement &placement() const { return place; }
  ProgressLine &board();
  /// By rank: what this rank shares with that one and nobody else, for this run. Empty where messages between hosts are
  /// not protected. Only once.
  std::vector<Digest> takeKeys() { return std::move(keys); }

  /// Everyone's bytes, by rank. All ranks call their exchanges in the same order. For addresses and other small things:
  /// it goes through the launcher.
  Result<std::vector<std::string>> allGather(const std::string &bytes, Deadline deadline);
  /// Returns when every rank is here.
  Status barrier(Deadline deadline);

  /// Tells the launcher why this rank is about to end with a non-zero code. Call it as soon as the cause is known.
  /// False if it cannot be told.
  bool reportFailure(const Status &status, FailureOrigin origin = FailureOrigin::own);

  /// After a failure was reported: returns when the launcher has found the cause and stops the ranks. Who left before
  /// would end connections that others use, and they would report that. The time is a bound.
  void awaitStop(Deadline deadline) const;

  /// SIGTERM has come to this rank: save and leave with exit code 75. Ranks see it at different times; to stop all at
  /// the same step ask mayStartStep.
  bool isShutdownRequested() const;
  /// Called by every rank before each step, in order, from 1. False once the job was asked to stop; all ranks get their
  /// first false for the same step, so that no one waits for a rank that left. Costs a load and a store.
  bool mayStartStep(uint64_t step);
  /// Whether the job was asked to save before that step, which this rank has just entered, and to go on. The same on
  /// all ranks.
  bool isSaveDue(uint64_t step) const;

  /// What outlives this rank; null: nothing does.
  KeptMemory *kept() const { return keptMemory; }
  /// Index of this rank in it.
  int64_t index() const { return localIndex; }
  /// Says that this rank has its snapshot of that step whole. Does not wait.
  void reportSnapshot(int64_t step);
  /// The step of the latest snapshot that all ranks have whole, as far as this rank was told.
  std::optional<int64_t> wholeSnapshot() const;

private:
  int64_t localIndex, self;
  const RankPlacement &place;
  SharedBoard &shared;
  std::unique_ptr<ControlSocket> socket;
  std::vector<Digest> keys;
  KeptMemory *keptMemory;
  uint64_t exchanges = 0;
};

} // namespace dg
