// SPDX-License-Identifier: Apache-2.0
// The shared mapping, and the agreement on the last step.
#include "runtime/launch/link/SharedBoard.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

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

// Dekker's pattern, sequentially consistent: a rank first writes the step it enters and then looks whether steps are
// held; the launcher first holds them and then reads what everyone entered. So either the rank sees the hold and waits
// for the choice, or the choice includes the rank's step.
bool SharedBoard::enterStep(int64_t index, uint64_t step) {
  slots()[index].entered.store(step);
  if (head->isHeld.load() == 0)
    return true;
  uint64_t last;
  while ((last = head->lastStep.load()) == 0 && head->isHeld.load() != 0)
    usleep(50); // a message to the other launchers and back; if ours is killed meanwhile, so is this rank
  return last == 0 || step <= last; // 0: held for a save only
}

uint64_t SharedBoard::hold() {
  head->isHeld.store(1);
  uint64_t last = 0;
  for (int64_t index = 0; index < ranks; ++index)
    last = std::max(last, slots()[index].entered.load());
  return last;
}

void SharedBoard::saveAt(uint64_t step) {
  if (step != head->saveSteps[0].load()) {
    head->saveSteps[1].store(head->saveSteps[0].load());
    head->saveSteps[0].store(step);
  }
  head->isHeld.store(0);
}

void SharedBoard::release(uint64_t lastStep) { head->lastStep.store(std::max<uint64_t>(lastStep, 1)); }

} // namespace dg
