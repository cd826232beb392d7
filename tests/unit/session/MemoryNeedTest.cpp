// SPDX-License-Identifier: Apache-2.0
// Proves that a plan whose ranks need more memory than their host has is refused with both numbers, whatever its arenas
// claim.
#include "runtime/session/MemoryNeed.h"

#include <gtest/gtest.h>

using namespace dg;
using namespace dg::session;

/// Two stages of two ranks each.
static plan::Plan planOf(uint64_t first, uint64_t second) {
  plan::Plan plan;
  plan.mesh.sizes[size_t(plan::Axis::pipe)] = 2;
  plan.mesh.sizes[size_t(plan::Axis::data)] = 2;
  plan.memory.resize(2);
  plan.memory[0].arenaBytes = first;
  plan.memory[1].arenaBytes = second;
  return plan;
}

TEST(MemoryNeed, countsTheSmallestRanksThatAHostCanHave) {
  const plan::Plan plan = planOf(100, 10);
  EXPECT_EQ(leastMemoryBytes(plan, 0), 0u);
  EXPECT_EQ(leastMemoryBytes(plan, 1), 10u);
  EXPECT_EQ(leastMemoryBytes(plan, 3), 120u);
  EXPECT_EQ(leastMemoryBytes(plan, 4), 220u);
  EXPECT_TRUE(checkMemoryNeed(plan, 4, 220));
  EXPECT_TRUE(checkMemoryNeed(plan, 4, std::nullopt)) << "a host that does not say";
}

TEST(MemoryNeed, refusesWithBothNumbers) {
  Status status = checkMemoryNeed(planOf(40'000'000'000, 2'000'000'000), 4, 24'000'000'000);
  EXPECT_EQ(status.kind(), ErrorKind::usage);
  EXPECT_NE(status.message().find("4 ranks on this host need 84 GB of memory for the plan, and it has 24 GB"),
            std::string::npos)
      << status.message();
}

TEST(MemoryNeed, whatCannotBeCountedIsTooMuch) {
  for (uint64_t arena : {UINT64_MAX, UINT64_MAX / 2, UINT64_MAX / 4 + 1})
    EXPECT_FALSE(checkMemoryNeed(planOf(arena, arena), 4, UINT64_MAX - 1)) << arena;
}
