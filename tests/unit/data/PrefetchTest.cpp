// SPDX-License-Identifier: Apache-2.0
// Proves that rows that were read ahead are the rows that were asked for, for any number of readers and steps ahead and
// across the end of a set; that a failure is the same one for any number of readers; and that nothing waits for ever.
#include "runtime/data/Feeder.h"
#include "runtime/data/order/SampleOrder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

using namespace dg;
using namespace dg::data;

namespace {

/// A row is the number of its sample.
Status readNumber(int64_t row, int64_t count, const std::function<int64_t(int64_t)> &sampleAt, std::byte *step,
                  Scratch &) {
  const int64_t sample = sampleAt(std::min(row, count - 1));
  std::memcpy(step + row * int64_t(sizeof sample), &sample, sizeof sample);
  return Status::ok();
}

} // namespace

TEST(Prefetch, anyNumberOfReadersReadsTheSameRows) {
  constexpr int64_t numSamples = 103, batch = 10, steps = 40;
  const SampleOrder order(numSamples, {}, 3, 0);
  const int64_t perEpoch = (numSamples + batch - 1) / batch;
  const StepOrder turns = inTurn(numSamples, batch);
  for (int64_t readers = 1; readers <= 8; ++readers)
    for (int64_t ahead : {1, 2, 5}) {
      PrefetchOptions options;
      options.readers = readers;
      StepOrder shuffled = {turns.count,
                            [&](int64_t step, int64_t number) { return order[turns.sample(step, number)]; }};
      Prefetch prefetch(ahead, options, shuffled, batch, batch * 8, readNumber);
      EXPECT_EQ(prefetch.bytes(), uint64_t(ahead * batch * 8));
      for (int64_t step = 0; step < steps; ++step) {
        const int64_t begin = step % perEpoch * batch, count = std::min(batch, numSamples - begin);
        auto taken = prefetch.take(count, order[begin]);
        ASSERT_TRUE(taken) << taken.status().message();
        for (int64_t row = 0; row < batch; ++row) {
          int64_t found = 0;
          std::memcpy(&found, *taken + row * 8, 8);
          ASSERT_EQ(found, order[begin + std::min(row, count - 1)]) << readers << " readers, step " << step;
        }
        prefetch.release();
      }
    }
}

TEST(Prefetch, theFirstFailureIsToldByAnyNumberOfReaders) {
  for (int64_t readers = 1; readers <= 8; ++readers) {
    PrefetchOptions options;
    options.readers = readers;
    Prefetch prefetch(3, options, inTurn(100, 10), 10, 80,
                      [](int64_t row, int64_t count, const auto &sampleAt, std::byte *step, Scratch &scratch) {
                        if (sampleAt(row) > 10 && row % 3 == 2)
                          return Status::error(ErrorKind::badInput, "sample {}", sampleAt(row));
                        return readNumber(row, count, sampleAt, step, scratch);
                      });
    ASSERT_TRUE(prefetch.take(10, 0));
    prefetch.release();
    auto failed = prefetch.take(10, 10);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.status().message(), "sample 12");
    EXPECT_EQ(failed.status().kind(), ErrorKind::badInput);
  }
}

TEST(Prefetch, aSourceThatHangsEndsTheWait) {
  std::mutex hanging;
  std::unique_lock lock(hanging);
  PrefetchOptions options;
  options.timeout = std::chrono::milliseconds(50);
  Prefetch prefetch(2, options, inTurn(4, 2), 2, 16, [&](int64_t, int64_t, const auto &, std::byte *, Scratch &) {
    std::lock_guard wait(hanging);
    return Status::ok();
  });
  auto late = prefetch.take(2, 0);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.status().kind(), ErrorKind::runFailed);
  EXPECT_NE(late.status().message().find("--readers"), std::string::npos) << late.status().message();
  lock.unlock(); // and the readers end
}

TEST(Prefetch, anotherOrderThanWasReadAheadIsADefect) {
  Prefetch prefetch(2, {}, inTurn(8, 4), 4, 32, readNumber);
  EXPECT_FALSE(prefetch.take(4, 4));
  EXPECT_FALSE(prefetch.take(3, 0));
  EXPECT_TRUE(prefetch.take(4, 0));
}
