// SPDX-License-Identifier: Apache-2.0
// Proves that the runs of all writing ranks cover a global tensor exactly once, for every small shape and sharding.
#include "runtime/checkpoint/ShardRuns.h"
#include "runtime/plan/SavedValues.h"
#include "tests/unit/plan/HandTasks.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace dg;
using namespace dg::checkpoint;

static plan::Value shardedValue(const std::vector<int64_t> &shape, const std::vector<std::string> &sharding,
                                const plan::Mesh &mesh) {
  plan::Value value;
  value.globalShape = value.shape = shape;
  value.sharding = plan::testing::axesNamed(sharding);
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (int64_t parts = mesh.sizeOf(sharding[dim]); parts > 0)
      value.shape[dim] = (shape[dim] + parts - 1) / parts;
  return value;
}

TEST(ShardRuns, writersCoverEveryElementOnce) {
  plan::Mesh mesh;
  mesh.sizes = {1, 2, 3};
  const std::string axes[] = {"", "data", "tensor"};
  for (int64_t a : {1, 2, 5})
    for (int64_t b : {1, 3, 7})
      for (int64_t c : {1, 4})
        for (const std::string &x : axes)
          for (const std::string &y : axes)
            for (const std::string &z : axes) {
              if ((!x.empty() && (x == y || x == z)) || (!y.empty() && y == z))
                continue;
              plan::Value value = shardedValue({a, b, c}, {x, y, z}, mesh);
              std::vector<int> written(size_t(a * b * c));
              for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
                plan::Coordinates at = mesh.coordinatesOf(rank);
                int64_t next = -1;
                for (const ShardRun &run : shardRunsOf(value, mesh, at)) {
                  ASSERT_GT(run.global, next);
                  next = run.global + run.elements - 1;
                  ASSERT_LE(run.local + run.elements, value.shape[0] * value.shape[1] * value.shape[2]);
                  for (int64_t i = 0; i < run.elements && plan::writesShard(value, at); ++i)
                    ++written[size_t(run.global + i)];
                }
              }
              ASSERT_TRUE(std::all_of(written.begin(), written.end(), [](int count) { return count == 1; }))
                  << a << "x" << b << "x" << c << " over '" << x << "', '" << y << "', '" << z << "'";
            }
}

TEST(ShardRuns, runsAreAsLongAsPossible) {
  plan::Mesh mesh;
  mesh.sizes = {1, 1, 2};
  EXPECT_EQ(shardRunsOf(shardedValue({8, 4, 2}, {"", "", ""}, mesh), mesh, {}), (std::vector<ShardRun>{{0, 0, 64}}));
  EXPECT_EQ(shardRunsOf(shardedValue({8, 4, 2}, {"tensor", "", ""}, mesh), mesh, {0, 0, 1}),
            (std::vector<ShardRun>{{0, 32, 32}}));
  EXPECT_EQ(shardRunsOf(shardedValue({2, 4, 2}, {"", "tensor", ""}, mesh), mesh, {0, 0, 1}),
            (std::vector<ShardRun>{{0, 4, 4}, {4, 12, 4}}));
}

TEST(ShardRuns, scalarsAreOneElement) {
  plan::Mesh mesh;
  EXPECT_EQ(shardRunsOf(plan::Value(), mesh, {}), (std::vector<ShardRun>{{0, 0, 1}}));
}

TEST(ShardRuns, otherStagesDoNotWrite) {
  plan::Value value;
  value.stage = 1;
  EXPECT_FALSE(plan::writesShard(value, {0, 0, 0}));
  EXPECT_TRUE(plan::writesShard(value, {1, 0, 0}));
  EXPECT_FALSE(plan::writesShard(value, {1, 1, 0}));
}
