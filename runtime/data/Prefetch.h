// SPDX-License-Identifier: Apache-2.0
// Reads the rows of steps ahead of the one that computes, in threads of its own, into memory of a fixed size. Which
// samples a step has is arithmetic, so that any number of readers reads the same rows to the same places.
#pragma once

#include "runtime/data/source/SampleSet.h"
#include "runtime/support/Status.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace dg::data {

/// The samples of the steps to come, counted from 0. Pure: any thread may ask.
struct StepOrder {
  std::function<int64_t(int64_t step)> count;                  ///< how many samples; 0: there is no such step
  std::function<int64_t(int64_t step, int64_t number)> sample; ///< number < count
};

/// Steps of `batch` samples in their order, and again from the first after the last.
StepOrder inTurn(int64_t numSamples, int64_t batch);

struct PrefetchOptions {
  /// That are read ahead; 0: none, rows are read when a step asks for them. Nothing: 2 where samples are decoded, and
  /// none where they lie in memory, for then a copy more costs more than the conversion does.
  std::optional<int64_t> steps;
  int64_t readers = 1; ///< threads
  std::chrono::milliseconds timeout{30'000};
};

/// How long steps waited for their data, and what reading cost.
struct DataWait {
  double waitSeconds = 0, readSeconds = 0; ///< of the steps; of all readers together
  int64_t readers = 0, steps = 0;          ///< 0 readers: the steps read themselves
  uint64_t bytes = 0;                      ///< of the rows that are kept ahead
};

class Prefetch {
public:
  /// Reads row `row` of a step of `count` samples into the step's memory, with `sampleAt` for the samples of the step.
  /// Called by several threads at once. Fails with the name of the sample.
  using ReadRow = std::function<Status(int64_t row, int64_t count, const std::function<int64_t(int64_t)> &sampleAt,
                                       std::byte *stepMemory, Scratch &scratch)>;

  /// Starts the readers; numSteps > 0 are read ahead. Each step has so many rows and bytes.
  Prefetch(int64_t numSteps, const PrefetchOptions &options, StepOrder order, int64_t rowsPerStep, int64_t bytesPerStep,
           ReadRow readRow);
  /// Waits for the rows that are being read.
  ~Prefetch();
  Prefetch(const Prefetch &) = delete;
  Prefetch &operator=(const Prefetch &) = delete;

  /// The memory of the next step, which has `count` samples of which the first is `first`; waits for it if it is late.
  /// One thread; the memory is its until release. Neither allocates nor, if the step is not late, locks. Fails as the
  /// row of the lowest number that could not be read, or when the time is over.
  Result<const std::byte *> take(int64_t count, int64_t first);
  /// Gives the memory that take gave back to the readers.
  void release();
  double readSeconds() const { return 1e-9 * double(busyNs.load(std::memory_order_relaxed)); }
  uint64_t bytes() const { return uint64_t(bytesPerStep) * slots.size(); }

private:
  struct Slot {
    std::vector<std::byte> memory;
    std::atomic<int64_t> left = 0; ///< rows that are not read yet
    Status failure = Status::ok(); ///< of row failedRow; guarded by the mutex until left is 0
    int64_t failedRow = 0;
  };
  void read();
  /// False if there is nothing more to read.
  bool awaitRoom(int64_t step);
  void keepFailure(Slot &slot, int64_t row, Status failure);

  const StepOrder order;
  const ReadRow readRow;
  const int64_t rowsPerStep, bytesPerStep;
  const std::chrono::milliseconds timeout;
  std::vector<Slot> slots;
  std::atomic<int64_t> nextRow = 0, taken = 0, busyNs = 0; ///< over all steps; steps that were released; of readers
  std::atomic<int> sleepers = 0;                           ///< readers that wait for room
  std::atomic<bool> isWaiting = false, isStopping = false; ///< the step waits; the end
  std::mutex mutex;
  std::condition_variable isRoom, isRead;
  std::vector<std::thread> readers;
};

} // namespace dg::data
