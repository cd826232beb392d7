// SPDX-License-Identifier: Apache-2.0
// Proves that dealing gives every sample of a step to exactly one (micro-batch, data rank), for every small case.
#include "runtime/data/Dealing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

using namespace dg::data;

TEST(Dealing, tenOverFourIsThreeThreeTwoTwo) {
  EXPECT_EQ(blockOf(10, 4, 0), (Block{0, 3}));
  EXPECT_EQ(blockOf(10, 4, 1), (Block{3, 3}));
  EXPECT_EQ(blockOf(10, 4, 2), (Block{6, 2}));
  EXPECT_EQ(blockOf(10, 4, 3), (Block{8, 2}));
}

TEST(Dealing, everySampleOnceInOrderAndEvenly) {
  for (int64_t samples = 0; samples <= 40; ++samples)
    for (int64_t microbatches = 1; microbatches <= 7; ++microbatches)
      for (int64_t ranks = 1; ranks <= 7; ++ranks) {
        Deal deal{microbatches, ranks};
        int64_t next = 0, largest = 0;
        for (int64_t m = 0; m < microbatches; ++m) {
          std::vector<int64_t> sizes;
          for (int64_t rank = 0; rank < ranks; ++rank) {
            Block block = dealtTo(samples, deal, m, rank);
            ASSERT_EQ(block.begin, next);
            next += block.size;
            largest = std::max(largest, block.size);
            sizes.push_back(block.size);
          }
          ASSERT_TRUE(std::is_sorted(sizes.rbegin(), sizes.rend()));
          ASSERT_LE(sizes.front() - sizes.back(), 1);
        }
        ASSERT_EQ(next, samples);
        ASSERT_EQ(rowsNeeded(samples, deal), largest);
      }
}

TEST(Dealing, aSmallerStepFitsTheRowsOfALargerOne) {
  for (int64_t microbatches = 1; microbatches <= 5; ++microbatches)
    for (int64_t ranks = 1; ranks <= 5; ++ranks)
      for (int64_t samples = 1; samples <= 30; ++samples)
        ASSERT_LE(rowsNeeded(samples - 1, {microbatches, ranks}), rowsNeeded(samples, {microbatches, ranks}));
}
