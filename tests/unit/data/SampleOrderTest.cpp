// SPDX-License-Identifier: Apache-2.0
// Proves that an epoch's order visits every sample once, depends on seed and epoch only, and that a buffer bounds how
// far a sample may move forward.
#include "runtime/data/SampleOrder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace dg::data;

static std::vector<int64_t> ascending(int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t(0));
  return order;
}

static const Shuffle kinds[] = {{Shuffle::Kind::none, 0},
                                {Shuffle::Kind::whole, 0},
                                {Shuffle::Kind::buffer, 1},
                                {Shuffle::Kind::buffer, 16},
                                {Shuffle::Kind::buffer, 5000}};

TEST(SampleOrder, everyKindVisitsEachSampleOnce) {
  for (const Shuffle &shuffle : kinds)
    for (int64_t count : {0, 1, 2, 17, 1000}) {
      auto order = sampleOrder(count, shuffle, 7, 3);
      std::sort(order.begin(), order.end());
      EXPECT_EQ(order, ascending(count)) << shuffle.describe();
    }
}

TEST(SampleOrder, dependsOnSeedAndEpochAlone) {
  for (const Shuffle &shuffle : {kinds[1], kinds[3]}) {
    auto order = sampleOrder(500, shuffle, 1, 0);
    EXPECT_EQ(order, sampleOrder(500, shuffle, 1, 0));
    EXPECT_NE(order, sampleOrder(500, shuffle, 1, 1));
    EXPECT_NE(order, sampleOrder(500, shuffle, 2, 0));
    EXPECT_NE(order, ascending(500));
  }
}

TEST(SampleOrder, withoutShufflingIsTheOrderOfTheFile) {
  EXPECT_EQ(sampleOrder(50, kinds[0], 1, 4), ascending(50));
  EXPECT_EQ(sampleOrder(50, kinds[2], 1, 4), ascending(50));
}

TEST(SampleOrder, aBufferShowsNoSampleBeforeItIsRead) {
  auto order = sampleOrder(1000, {Shuffle::Kind::buffer, 16}, 1, 0);
  for (size_t i = 0; i < order.size(); ++i)
    ASSERT_LT(order[i], int64_t(i) + 16);
}

TEST(SampleOrder, firstPositionsOfAWholeShuffleAreUniform) {
  // 2,000 epochs of 10 samples: each sample stands first 200 times, give or take six standard deviations.
  std::vector<int> first(10);
  for (int64_t epoch = 0; epoch < 2000; ++epoch)
    ++first[size_t(sampleOrder(10, {Shuffle::Kind::whole, 0}, 1, epoch).front())];
  for (int count : first)
    EXPECT_NEAR(count, 200, 81);
}
