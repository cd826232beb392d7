// SPDX-License-Identifier: Apache-2.0
// Proves that holding samples out divides them into two parts of the right sizes, by the seed alone, each sample as
// likely as another.
#include "runtime/data/order/HoldOut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace dg::data;

TEST(HoldOut, everySampleIsInOneOfTheTwo) {
  for (int64_t count : {1, 2, 10, 53, 1000})
    for (double fraction : {0.0, 0.1, 0.5, 0.999}) {
      HoldOut parts = holdOut(count, fraction, 7);
      EXPECT_EQ(int64_t(parts.validation.size()), std::llround(double(count) * fraction));
      EXPECT_TRUE(std::is_sorted(parts.training.begin(), parts.training.end()));
      EXPECT_TRUE(std::is_sorted(parts.validation.begin(), parts.validation.end()));
      std::vector<int64_t> all = parts.training;
      all.insert(all.end(), parts.validation.begin(), parts.validation.end());
      std::sort(all.begin(), all.end());
      for (int64_t i = 0; i < count; ++i)
        EXPECT_EQ(all.at(size_t(i)), i);
      EXPECT_EQ(all.size(), size_t(count));
    }
}

TEST(HoldOut, theSeedDecides) {
  EXPECT_EQ(holdOut(1000, 0.1, 7).validation, holdOut(1000, 0.1, 7).validation);
  EXPECT_NE(holdOut(1000, 0.1, 7).validation, holdOut(1000, 0.1, 8).validation);
  // 4000 draws of 2 of 10: each sample 800 times but for chance (deviation 25).
  std::vector<int> times(10);
  for (uint64_t seed = 0; seed < 4000; ++seed)
    for (int64_t sample : holdOut(10, 0.2, seed).validation)
      ++times[size_t(sample)];
  for (int count : times)
    EXPECT_NEAR(count, 800, 6 * 25.3);
}
