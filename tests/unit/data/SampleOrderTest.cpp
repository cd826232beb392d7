// SPDX-License-Identifier: Apache-2.0
// Proves that an epoch's order visits every sample once, depends on seed and epoch only, is as likely as any other,
// and that it is at any position of a set of any size at once.
#include "runtime/data/order/SampleOrder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

using namespace dg::data;

static std::vector<int64_t> ascending(int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t(0));
  return order;
}

static std::vector<int64_t> listOf(int64_t count, const Shuffle &shuffle, uint64_t seed, int64_t epoch) {
  SampleOrder order(count, shuffle, seed, epoch);
  std::vector<int64_t> list;
  for (int64_t position = 0; position < count; ++position)
    list.push_back(order[position]);
  return list;
}

static const Shuffle none = {Shuffle::Kind::none, 0}, whole = {Shuffle::Kind::random, 0};
static Shuffle windows(int64_t size) { return {Shuffle::Kind::window, size}; }

TEST(SampleOrder, everyKindVisitsEachSampleOnce) {
  for (const Shuffle &shuffle : {none, whole, windows(1), windows(3), windows(16), windows(5000)})
    for (int64_t count = 0; count < 300; ++count) {
      auto order = listOf(count, shuffle, 7, 3);
      std::sort(order.begin(), order.end());
      ASSERT_EQ(order, ascending(count)) << shuffle.describe();
    }
}

TEST(SampleOrder, aMillionSamplesAreEachVisitedOnce) {
  constexpr int64_t count = 1000003;
  for (const Shuffle &shuffle : {whole, windows(1000)}) {
    SampleOrder order(count, shuffle, 11, 2);
    std::vector<bool> seen(count);
    for (int64_t position = 0; position < count; ++position) {
      int64_t sample = order[position];
      ASSERT_TRUE(sample >= 0 && sample < count && !seen[size_t(sample)]) << shuffle.describe() << " at " << position;
      seen[size_t(sample)] = true;
    }
  }
}

TEST(SampleOrder, manyAtOnceAreThoseOfEachPosition) {
  for (const Shuffle &shuffle : {none, whole, windows(1), windows(7), windows(100)})
    for (int64_t count : {1, 5, 64, 103, 5000}) {
      SampleOrder order(count, shuffle, 5, 1);
      const auto alone = listOf(count, shuffle, 5, 1);
      for (int64_t size : {1, 3, 8, 64, 5000})
        for (int64_t position = 0; position < count; position += size) {
          std::vector<int64_t> out(size_t(std::min(size, count - position)));
          order.fill(position, out);
          ASSERT_TRUE(std::equal(out.begin(), out.end(), alone.begin() + position))
              << shuffle.describe() << ", " << size;
        }
    }
}

TEST(SampleOrder, dependsOnSeedAndEpochAlone) {
  for (const Shuffle &shuffle : {whole, windows(16)}) {
    auto order = listOf(500, shuffle, 1, 0);
    EXPECT_EQ(order, listOf(500, shuffle, 1, 0));
    EXPECT_NE(order, listOf(500, shuffle, 1, 1));
    EXPECT_NE(order, listOf(500, shuffle, 2, 0));
    EXPECT_NE(order, ascending(500));
  }
}

TEST(SampleOrder, withoutShufflingIsTheOrderOfTheFile) { EXPECT_EQ(listOf(50, none, 1, 4), ascending(50)); }

TEST(SampleOrder, samplesOfAWindowFollowEachOther) {
  // 100 samples in windows of 16: six full ones and one of four, each visited without a pause.
  auto order = listOf(100, windows(16), 1, 0);
  std::vector<int64_t> visited;
  for (int64_t sample : order)
    if (visited.empty() || visited.back() != sample / 16)
      visited.push_back(sample / 16);
  EXPECT_EQ(visited.size(), 7u);
  EXPECT_NE(visited, ascending(7));
}

/// Chi-squared over all orders of few samples. 5 standard deviations of the statistic above its mean.
static void expectUniform(int64_t count, const Shuffle &shuffle) {
  constexpr int64_t perOrder = 200;
  int64_t orders = 1;
  for (int64_t i = 2; i <= count; ++i)
    orders *= i;
  std::map<std::vector<int64_t>, int64_t> found;
  for (int64_t epoch = 0; epoch < orders * perOrder; ++epoch)
    ++found[listOf(count, shuffle, 5, epoch)];
  double statistic = double(orders - int64_t(found.size())) * perOrder;
  for (const auto &[order, times] : found)
    statistic += double((times - perOrder) * (times - perOrder)) / perOrder;
  EXPECT_LT(statistic, double(orders - 1) + 5 * std::sqrt(2.0 * double(orders - 1))) << count;
}

TEST(SampleOrder, allOrdersOfFewSamplesAreEquallyLikely) {
  for (int64_t count : {2, 3, 4, 5})
    expectUniform(count, whole);
  // A window of one sample: the last is not smaller, and the order is one of windows.
  expectUniform(5, windows(1));
}

TEST(SampleOrder, everySampleIsAsLikelyAtEveryPosition) {
  // 20,000 epochs of 40 samples in windows of 8, or without: 500 times each, give or take six standard deviations.
  for (const Shuffle &shuffle : {whole, windows(8)}) {
    constexpr int64_t count = 40, epochs = 20000;
    std::vector<int64_t> at(count * count);
    for (int64_t epoch = 0; epoch < epochs; ++epoch) {
      auto order = listOf(count, shuffle, 9, epoch);
      for (int64_t position = 0; position < count; ++position)
        ++at[size_t(position * count + order[size_t(position)])];
    }
    for (int64_t times : at)
      ASSERT_NEAR(double(times), double(epochs) / count, 6 * std::sqrt(double(epochs) / count)) << shuffle.describe();
  }
}

TEST(SampleOrder, neighboursOfAWholeShuffleAreNotNeighboursOfTheFile) {
  // In a random order of n samples, one position in n is followed by the next sample of the file.
  constexpr int64_t count = 100000;
  int64_t followers = 0;
  for (int64_t epoch = 0; epoch < 10; ++epoch) {
    auto order = listOf(count, whole, 3, epoch);
    for (size_t i = 1; i < order.size(); ++i)
      followers += order[i] == order[i - 1] + 1;
  }
  EXPECT_LT(followers, 30); // 10 expected
}

TEST(SampleOrder, isAtAnyPositionOfABillionSamplesAtOnce) {
  for (const Shuffle &shuffle : {whole, windows(4096)}) {
    auto begin = std::chrono::steady_clock::now();
    SampleOrder order(1000000000, shuffle, 1, 7);
    int64_t sample = order[987654321];
    auto taken = std::chrono::steady_clock::now() - begin;
    EXPECT_TRUE(sample >= 0 && sample < 1000000000);
    EXPECT_LT(taken, std::chrono::milliseconds(10)) << shuffle.describe();
  }
}
