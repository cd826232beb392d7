// SPDX-License-Identifier: Apache-2.0
// Proves that a snapshot brings back what a rank had, bit for bit, that the one before it stays whole while it is
// written, and that one which is torn or changed is not restored.
#include "runtime/checkpoint/Snapshot.h"
#include "tests/unit/checkpoint/SimulatedRanks.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <utility>

using namespace dg;
using namespace dg::checkpoint;
using dg::test::keptValue;
using dg::test::SimulatedRanks;

namespace {

plan::Plan makePlan() {
  plan::Plan plan;
  plan.model.name = "toy";
  plan.mesh.sizes = {2, 2, 1};
  plan.values = {keptValue(plan.mesh, "weight", 0, {31, 7}, {"", ""}),
                 keptValue(plan.mesh, "momentum", 0, {31, 7}, {"data", ""}, plan::ValueKind::state),
                 keptValue(plan.mesh, "head", 1, {5}, {""})};
  return plan;
}

TrainingState stateAt(int64_t step) {
  TrainingState state;
  state.model = "toy";
  state.step = step;
  state.lossSum = 0.1 * double(step);
  state.kept = Best{"accuracy", 0.3, 7, 1};
  return state;
}

/// Pages as KeptMemory gives them: page by page, zero.
class Pages {
public:
  explicit Pages(uint64_t bytes) : bytes((bytes + 4095) / 4096 * 4096) {
    memory = mmap(nullptr, 2 * this->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  }
  ~Pages() { munmap(memory, 2 * bytes); }
  std::array<std::span<std::byte>, 2> regions(uint64_t used) const {
    auto *begin = static_cast<std::byte *>(memory);
    return {std::span(begin, used), std::span(begin + bytes, used)};
  }

private:
  const uint64_t bytes;
  void *memory;
};

class SnapshotTest : public testing::Test {
protected:
  static constexpr int64_t rank = 1; ///< of stage 0, with the second half of the momentum
  void fillWith(float number) {
    for (plan::ValueId id = 0; id < plan.values.size(); ++id)
      for (float &value : ranks.valueOf(rank, id))
        value = number++;
  }
  std::vector<std::vector<float>> all() {
    std::vector<std::vector<float>> values;
    for (plan::ValueId id = 0; id < plan.values.size(); ++id)
      values.push_back(ranks.valueOf(rank, id));
    return values;
  }
  plan::Plan plan = makePlan();
  SimulatedRanks ranks{plan};
  SimulatedRanks::Values values{ranks, rank};
  const plan::Coordinates at = plan.mesh.coordinatesOf(rank);
  const uint64_t bytes = RankSnapshots::bytesNeeded(plan, at);
  Pages pages{bytes};
  RankSnapshots snapshots{plan, at, pages.regions(bytes)};
};

TEST_F(SnapshotTest, bringsBackValuesAndState) {
  EXPECT_FALSE(snapshots.restore(0, values));
  fillWith(1);
  const auto before = all();
  ASSERT_TRUE(snapshots.take(stateAt(50), values, std::nullopt));
  fillWith(1000);
  // Another object over the same memory, as in the rank that comes after this one.
  RankSnapshots later(plan, at, pages.regions(bytes));
  auto state = later.restore(50, values);
  ASSERT_TRUE(state) << state.status().message();
  EXPECT_EQ(*state, stateAt(50));
  auto expected = all();
  for (plan::ValueId id : {0u, 1u})
    expected[id] = before[id];
  EXPECT_EQ(all(), expected);
  EXPECT_FALSE(later.restore(51, values));
}

TEST_F(SnapshotTest, theOneThatIsNeededStays) {
  fillWith(1);
  const auto first = all();
  ASSERT_TRUE(snapshots.take(stateAt(50), values, std::nullopt));
  for (int64_t step : {60, 70, 80}) { // none of them is whole on all ranks
    fillWith(float(step));
    ASSERT_TRUE(snapshots.take(stateAt(step), values, 50));
    EXPECT_TRUE(snapshots.restore(step, values));
    auto state = snapshots.restore(50, values);
    ASSERT_TRUE(state) << state.status().message();
    EXPECT_EQ(all()[0], first[0]);
  }
  ASSERT_TRUE(snapshots.take(stateAt(90), values, 80));
  EXPECT_TRUE(snapshots.restore(80, values));
  EXPECT_FALSE(snapshots.restore(50, values));
}

TEST_F(SnapshotTest, whatIsChangedIsNotRestored) {
  fillWith(1);
  ASSERT_TRUE(snapshots.take(stateAt(50), values, std::nullopt));
  const auto before = all();
  const std::span<std::byte> region = pages.regions(bytes)[0];
  int numRefused = 0;
  for (size_t offset = 0; offset < region.size(); offset += 13) {
    if (region[offset] == std::byte{0}) // padding
      continue;
    const std::byte was = std::exchange(region[offset], region[offset] ^ std::byte{1});
    auto state = snapshots.restore(50, values);
    EXPECT_TRUE(!state || (*state == stateAt(50) && all() == before)) << "byte " << offset;
    numRefused += !state;
    region[offset] = was;
  }
  EXPECT_GT(numRefused, 50);
  EXPECT_EQ(all(), before) << "nothing is restored of what is refused";
}

} // namespace
