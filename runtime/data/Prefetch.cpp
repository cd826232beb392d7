// SPDX-License-Identifier: Apache-2.0
// Rows are numbered over all steps; a reader takes the next number, and waits where the memory of that step is still
// another's. What is handed over is a counter of a step's rows that are left. Only who must sleep takes the mutex.
#include "runtime/data/Prefetch.h"

#include <algorithm>
#include <csignal>
#include <new>
#include <pthread.h>

namespace dg::data {

StepOrder inTurn(int64_t numSamples, int64_t batch) {
  const int64_t steps = (numSamples + batch - 1) / batch;
  return {[=](int64_t step) { return std::min(batch, numSamples - step % steps * batch); },
          [=](int64_t step, int64_t number) { return step % steps * batch + number; }};
}

Prefetch::Prefetch(int64_t numSteps, const PrefetchOptions &options, StepOrder order, int64_t rowsPerStep,
                   int64_t bytesPerStep, ReadRow readRow)
    : order(std::move(order)), readRow(std::move(readRow)), rowsPerStep(rowsPerStep), bytesPerStep(bytesPerStep),
      timeout(options.timeout), slots(size_t(numSteps)) {
  for (Slot &slot : slots) {
    slot.memory.resize(size_t(bytesPerStep));
    slot.left.store(rowsPerStep, std::memory_order_relaxed);
  }
  // Signals are the main thread's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int64_t reader = 0; reader < options.readers; ++reader)
    readers.emplace_back([this] { read(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Prefetch::~Prefetch() {
  {
    std::lock_guard lock(mutex);
    isStopping = true;
  }
  isRoom.notify_all();
  for (std::thread &reader : readers)
    reader.join();
}

bool Prefetch::awaitRoom(int64_t step) {
  auto isFree = [&] { return step < taken.load() + int64_t(slots.size()); };
  if (!isFree()) {
    std::unique_lock lock(mutex);
    ++sleepers; // before it looks again: release sees it, or it sees release
    isRoom.wait(lock, [&] { return isStopping || isFree(); });
    --sleepers;
  }
  return !isStopping;
}

void Prefetch::keepFailure(Slot &slot, int64_t row, Status failure) {
  std::lock_guard lock(mutex);
  if (!slot.failure && slot.failedRow < row)
    return;
  slot.failure = std::move(failure);
  slot.failedRow = row;
}

void Prefetch::read() {
  Scratch scratch;
  while (true) {
    const int64_t number = nextRow.fetch_add(1), step = number / rowsPerStep, row = number % rowsPerStep;
    if (!awaitRoom(step))
      return;
    const auto begin = std::chrono::steady_clock::now();
    const int64_t count = order.count(step);
    if (count < 1)
      return;
    Slot &slot = slots[size_t(step) % slots.size()];
    auto sampleAt = [&](int64_t at) { return order.sample(step, at); };
    try {
      if (Status status = readRow(row, count, sampleAt, slot.memory.data(), scratch); !status)
        keepFailure(slot, row, std::move(status));
    } catch (const std::bad_alloc &) {
      keepFailure(slot, row, Status::error(ErrorKind::runFailed, "no memory to read the data of step {} ahead", step));
    }
    busyNs.fetch_add((std::chrono::steady_clock::now() - begin).count(), std::memory_order_relaxed);
    if (slot.left.fetch_sub(1) == 1 && isWaiting) {
      {
        std::lock_guard lock(mutex);
      } // it sleeps, or has not looked yet
      isRead.notify_one();
    }
  }
}

Result<const std::byte *> Prefetch::take(int64_t count, int64_t first) {
  const int64_t step = taken.load(std::memory_order_relaxed);
  Slot &slot = slots[size_t(step) % slots.size()];
  if (order.count(step) != count || order.sample(step, 0) != first)
    return Status::error(ErrorKind::runFailed, "step {} was read ahead for {} samples from {} on, but is of {} from {}",
                         step, order.count(step), order.sample(step, 0), count, first);
  if (slot.left.load() > 0) {
    std::unique_lock lock(mutex);
    isWaiting = true;
    const bool isInTime = isRead.wait_for(lock, timeout, [&] { return slot.left.load() == 0; });
    isWaiting = false;
    if (!isInTime)
      return Status::error(ErrorKind::runFailed,
                           "the data of a step were not read within {} s: the source hangs or is too slow; give more "
                           "--readers, or more --timeout",
                           std::chrono::duration<double>(timeout).count());
  }
  if (!slot.failure)
    return slot.failure;
  return slot.memory.data();
}

void Prefetch::release() {
  const int64_t step = taken.load(std::memory_order_relaxed);
  slots[size_t(step) % slots.size()].left.store(rowsPerStep, std::memory_order_relaxed);
  taken.store(step + 1);
  if (sleepers.load() > 0) {
    {
      std::lock_guard lock(mutex);
    }
    isRoom.notify_all();
  }
}

} // namespace dg::data
