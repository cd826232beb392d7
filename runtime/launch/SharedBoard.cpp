// SPDX-License-Identifier: Apache-2.0
// The shared mapping, and the agreement on the last step.
#include "runtime/launch/SharedBoard.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sched.h>
#include <sys/mman.h>

namespace dg {

Result<std::unique_ptr<SharedBoard>> SharedBoard::make(int64_t numRanks) {
  static_assert(sizeof(Head) <= 64);
  size_t bytes = 64 + size_t(numRanks) * sizeof(Slot);
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return Status::error(ErrorKind::runFailed, "cannot map {} bytes for the board of {} ranks: {}", bytes, numRanks,
                         std::strerror(errno));
  return std::unique_ptr<SharedBoard>(new SharedBoard(memory, bytes, numRanks));
}

SharedBoard::SharedBoard(void *memory, size_t bytes, int64_t numRanks)
    : head(new(memory) Head{}), bytes(bytes), ranks(numRanks) {
  for (int64_t rank = 0; rank < numRanks; ++rank)
    new (slots() + rank) Slot{};
}

SharedBoard::~SharedBoard() { munmap(head, bytes); }

// Dekker's pattern, sequentially consistent: a rank first writes the step it enters and then looks whether someone
// stops the job; who stops it first says so and then reads what everyone entered. So either the rank sees the stop and
// waits for the choice, or the choice includes the rank's step.
bool SharedBoard::enterStep(int64_t rank, uint64_t step) {
  slots()[rank].entered.store(step);
  if (head->isStopping.load() == 0) {
    if (!isShutdownRequested())
      return true;
    if (head->isStopping.exchange(1) == 0) {
      uint64_t last = 0;
      for (int64_t other = 0; other < ranks; ++other)
        last = std::max(last, slots()[other].entered.load());
      head->lastStep.store(last);
    }
  }
  uint64_t last;
  while ((last = head->lastStep.load()) == 0)
    sched_yield(); // the chooser needs a microsecond; if it is killed there, the launcher ends this rank too
  return step <= last;
}

} // namespace dg
