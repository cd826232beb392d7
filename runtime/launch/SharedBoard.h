// SPDX-License-Identifier: Apache-2.0
// The memory that launcher and ranks share: the progress lines, and the words by which a job agrees where to stop. It
// is an anonymous mapping made before the fork: it has no name, and it goes with the last process.
#pragma once

#include "runtime/executor/ProgressBoard.h"
#include "runtime/support/Status.h"

#include <memory>

namespace dg {

/// Everything here is atomic: any process and thread may call anything, also in a signal handler.
class SharedBoard {
public:
  static Result<std::unique_ptr<SharedBoard>> make(int64_t numRanks);
  SharedBoard(const SharedBoard &) = delete;
  ~SharedBoard();

  int64_t numRanks() const { return ranks; }
  ProgressLine &line(int64_t rank) { return slots()[rank].line; }

  /// The job shall save and leave.
  void requestShutdown() { head->shutdownRequested.store(1); }
  bool isShutdownRequested() const { return head->shutdownRequested.load(std::memory_order_relaxed) != 0; }
  /// The job is lost: a rank that gets SIGTERM leaves at once.
  void abandon() { head->abandoned.store(1); }
  bool isAbandoned() const { return head->abandoned.load() != 0; }

  /// See RankContext::mayStartStep.
  bool enterStep(int64_t rank, uint64_t step);

private:
  struct Head {
    std::atomic<uint32_t> shutdownRequested, abandoned;
    std::atomic<uint32_t> isStopping; ///< someone is choosing lastStep
    std::atomic<uint64_t> lastStep;   ///< 0 until chosen
  };
  struct alignas(64) Slot {
    ProgressLine line;
    std::atomic<uint64_t> entered; ///< the last step that the rank asked for
  };

  SharedBoard(void *memory, size_t bytes, int64_t numRanks);
  Slot *slots() const { return reinterpret_cast<Slot *>(reinterpret_cast<char *>(head) + 64); }

  Head *head;
  size_t bytes;
  int64_t ranks;
};

} // namespace dg
