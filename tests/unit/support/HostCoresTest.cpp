// SPDX-License-Identifier: Apache-2.0
// Proves that ranks which share cores evenly are dealt out in turn and stay there, and that all others are left alone.
#include "runtime/support/HostCores.h"

#include <gtest/gtest.h>

#include <thread>

using namespace dg;

TEST(HostCores, DealsOutRanksThatShareEvenly) {
  const std::vector<int> cores = {2, 5};
  for (int64_t rank = 0; rank < 6; ++rank) {
    CoreUse use = coreUseOf(rank, 6, 1, cores);
    EXPECT_TRUE(use.isShared);
    EXPECT_EQ(use.core, rank % 2 == 0 ? 2 : 5) << rank;
  }
}

TEST(HostCores, LeavesOthersToTheSystem) {
  const std::vector<int> cores = {0, 1, 2, 3};
  EXPECT_FALSE(coreUseOf(1, 4, 1, cores).isShared) << "a core for each";
  EXPECT_FALSE(coreUseOf(1, 4, 1, cores).core);
  EXPECT_TRUE(coreUseOf(1, 6, 1, cores).isShared) << "six ranks on four cores";
  EXPECT_FALSE(coreUseOf(1, 6, 1, cores).core);
  EXPECT_TRUE(coreUseOf(1, 8, 2, cores).isShared) << "two threads in each rank";
  EXPECT_FALSE(coreUseOf(1, 8, 2, cores).core);
}

TEST(HostCores, StaysOnItsCore) {
  std::vector<int> before = usableCores(), within;
  ASSERT_FALSE(before.empty());
  std::thread bound([&] {
    ASSERT_TRUE(stayOnCore(before.back()));
    within = usableCores();
  });
  bound.join();
  EXPECT_EQ(within, std::vector<int>{before.back()});
  EXPECT_EQ(usableCores(), before) << "only that thread";
  EXPECT_FALSE(stayOnCore(1023)) << "no such core";
}
