// SPDX-License-Identifier: Apache-2.0
// Proves that ranks and coordinates are each other's inverse and that groups partition the ranks.
#include "runtime/plan/Plan.h"

#include <gtest/gtest.h>

#include <set>

using namespace dg::plan;

TEST(Mesh, CoordinatesAreTheInverseOfRanksAndTensorMovesFastest) {
  Mesh mesh;
  mesh.sizes = {3, 2, 4};
  ASSERT_EQ(mesh.numRanks(), 24);
  for (int64_t rank = 0; rank < 24; ++rank)
    EXPECT_EQ(mesh.rankOf(mesh.coordinatesOf(rank)), rank);
  EXPECT_EQ(mesh.rankOf({0, 0, 1}), 1);
  EXPECT_EQ(mesh.rankOf({0, 1, 0}), 4);
  EXPECT_EQ(mesh.rankOf({1, 0, 0}), 8);
  EXPECT_EQ(mesh.sizeOf("tensor"), 4);
  EXPECT_EQ(mesh.sizeOf("expert"), 0);
}

TEST(Mesh, GroupsOfAnAxisPartitionTheRanks) {
  Mesh mesh;
  mesh.sizes = {3, 2, 4};
  for (Axis axis : allAxes) {
    std::set<std::vector<int64_t>> groups;
    std::set<int64_t> ranks;
    for (int64_t rank = 0; rank < 24; ++rank) {
      std::vector<int64_t> group = mesh.groupOf(rank, axis);
      EXPECT_EQ(int64_t(group.size()), mesh.sizeOf(axis));
      EXPECT_EQ(std::count(group.begin(), group.end(), rank), 1);
      groups.insert(group);
      ranks.insert(group.begin(), group.end());
    }
    EXPECT_EQ(int64_t(groups.size()), 24 / mesh.sizeOf(axis));
    EXPECT_EQ(ranks.size(), 24u);
  }
}
