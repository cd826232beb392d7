// SPDX-License-Identifier: Apache-2.0
// The memory that a launcher and its ranks share: the progress lines, and the words by which a job agrees where to
// stop. It is an anonymous mapping made before the fork: it has no name, and it goes with the last process.
#pragma once

#include "runtime/executor/ProgressBoard.h"
#include "runtime/support/Status.h"

#include <memory>
#include <optional>

namespace dg {

/// Everything here is atomic: any process and thread may call anything, also in a signal handler.
class SharedBoard {
public:
  static Result<std::unique_ptr<SharedBoard>> make(int64_t numRanks);
  SharedBoard(const SharedBoard &) = delete;
  ~SharedBoard();

  /// Ranks are counted from 0 here, whatever their numbers in the job.
  ProgressLine &line(int64_t index) { return slots()[index].line; }

  /// The signal by which the transport of a rank ended, which the rank outlives; 0: none.
  void noteBreak(int64_t index, int signal) { slots()[index].brokenBy.store(signal); }
  int brokenBy(int64_t index) const { return slots()[index].brokenBy.load(std::memory_order_relaxed); }

  /// The job shall save and leave.
  void requestShutdown() { head->shutdownRequested.store(1); }
  bool isShutdownRequested() const { return head->shutdownRequested.load(std::memory_order_relaxed) != 0; }
  /// The job is lost: a rank that gets SIGTERM leaves at once.
  void abandon() { head->abandoned.store(1); }
  bool isAbandoned() const { return head->abandoned.load() != 0; }

  /// The job shall save and go on. Taken by the launcher, once.
  void requestSave() { head->saveRequested.store(1); }
  bool takeSaveRequest() { return head->saveRequested.exchange(0) != 0; }
  /// Ends a hold(): ranks save before that step, which none of them has entered, and go on.
  void saveAt(uint64_t step);
  /// To be asked after enterStep of that step.
  bool isSaveDue(uint64_t step) const { return head->saveSteps[0].load() == step || head->saveSteps[1].load() == step; }

  /// The step of the latest snapshot that all ranks of the job have whole; nothing: there is none.
  void setWholeSnapshot(int64_t step) { head->wholeSnapshot.store(uint64_t(step) + 1); }
  std::optional<int64_t> wholeSnapshot() const {
    const uint64_t number = head->wholeSnapshot.load();
    return number == 0 ? std::nullopt : std::optional(int64_t(number) - 1);
  }

  /// See RankContext::mayStartStep.
  bool enterStep(int64_t index, uint64_t step);
  /// From now on no rank here begins a step before release(). Returns the largest step that one has begun; 0 if none.
  uint64_t hold();
  /// Ranks go on up to that step, and then leave.
  void release(uint64_t lastStep);

private:
  struct Head {
    std::atomic<uint32_t> shutdownRequested, abandoned;
    std::atomic<uint32_t> isHeld;   ///< lastStep is being chosen, or has been
    std::atomic<uint64_t> lastStep; ///< 0 until chosen
    /// The last two: ranks meet in a save, so that none of them is more than one behind.
    std::atomic<uint64_t> saveSteps[2];
    std::atomic<uint32_t> saveRequested;
    std::atomic<uint64_t> wholeSnapshot; ///< its step + 1
  };
  struct alignas(64) Slot {
    ProgressLine line;
    std::atomic<uint64_t> entered; ///< the last step that the rank asked for
    std::atomic<int> brokenBy;
  };

  SharedBoard(void *memory, size_t bytes, int64_t numRanks);
  Slot *slots() const { return reinterpret_cast<Slot *>(reinterpret_cast<char *>(head) + 64); }

  Head *head;
  size_t bytes;
  int64_t ranks;
};

} // namespace dg
