// SPDX-License-Identifier: Apache-2.0
// Proves that a save behind steps has the values of the moment when it began, that what is read back is compared with
// what ranks wrote, that a save which failed can be tried again, and that what a run left between two calls is
// understood.
#include "runtime/checkpoint/CheckpointSave.h"
#include "runtime/checkpoint/Retention.h"
#include "runtime/plan/SavedValues.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/checkpoint/SimulatedRanks.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

using namespace dg;
using namespace dg::checkpoint;
using dg::test::keptValue;
using dg::test::SimulatedRanks;
using dg::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

plan::Plan makePlan() {
  plan::Plan plan;
  plan.model.name = "toy";
  plan.mesh.sizes = {2, 2, 1};
  plan.values = {keptValue(plan.mesh, "weight", 0, {300, 1000}, {"", ""}),
                 keptValue(plan.mesh, "momentum", 0, {300, 1000}, {"data", ""}, plan::ValueKind::state),
                 keptValue(plan.mesh, "head", 1, {100}, {""})};
  return plan;
}

TrainingState stateAt(int64_t step) {
  TrainingState state;
  state.model = "toy";
  state.step = step;
  return state;
}

void fillWith(const plan::Plan &plan, SimulatedRanks &ranks, int64_t rank, float number) {
  for (plan::ValueId id = 0; id < plan.values.size(); ++id)
    std::fill(ranks.valueOf(rank, id).begin(), ranks.valueOf(rank, id).end(), number);
}

void writeAt(const plan::Plan &plan, const std::string &directory, int64_t step) {
  SimulatedRanks ranks(plan);
  for (const auto &result : ranks.write(directory, stateAt(step)))
    ASSERT_TRUE(result) << result.status().message();
}

void flipByte(const std::string &path, int64_t fromEnd) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-fromEnd, std::ios::end);
  const int byte = file.get();
  file.seekp(-fromEnd, std::ios::end).put(char(byte ^ 1));
}

} // namespace

TEST(CheckpointSave, valuesAreThoseOfTheMomentWhenItBegan) {
  TemporaryFolder folder;
  const plan::Plan plan = makePlan();
  SimulatedRanks ranks(plan);
  for (int64_t rank = 0; rank < 4; ++rank)
    fillWith(plan, ranks, rank, 1);
  ranks.meanwhile = [&](int64_t rank, int64_t step) { fillWith(plan, ranks, rank, float(step)); };
  for (const auto &result : ranks.write(folder.path("ckpt"), stateAt(7)))
    ASSERT_TRUE(result) << result.status().message();
  for (int64_t rank = 0; rank < 4; ++rank)
    EXPECT_NE(ranks.valueOf(rank, 2)[0], 1) << "nothing was changed meanwhile";
  auto checkpoint = Checkpoint::open(folder.path("ckpt"));
  ASSERT_TRUE(checkpoint) << checkpoint.status().message();
  for (int64_t rank = 0; rank < 4; ++rank) {
    SimulatedRanks::Values values(ranks, rank);
    ASSERT_TRUE(checkpoint->restore(plan, plan.mesh.coordinatesOf(rank), values));
    for (plan::ValueId id = 0; id < plan.values.size(); ++id)
      if (int64_t(plan.values[id].stage) == plan.mesh.coordinatesOf(rank).pipe)
        EXPECT_EQ(ranks.valueOf(rank, id), std::vector<float>(ranks.valueOf(rank, id).size(), 1.0f));
  }
}

TEST(CheckpointSave, theCopyIsWhatARankWrites) {
  const plan::Plan plan = makePlan();
  SimulatedRanks ranks(plan);
  TemporaryFolder folder;
  // Rank 0 writes the weight and half of the momentum, rank 1 the other half.
  const uint64_t weight = 300 * 1000 * sizeof(float);
  EXPECT_EQ(ranks.copyBytes(folder.path("ckpt")), (std::vector<uint64_t>{weight + weight / 2, weight / 2, 400, 0}));
  for (int64_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(ranks.copyBytes(folder.path("ckpt"))[size_t(rank)],
              plan::saveCopyBytes(plan, plan.mesh.coordinatesOf(rank)));
  EXPECT_EQ(plan::saveCopyBytes(plan, uint32_t(0)), weight + weight / 2) << "what is told is what is taken";
}

TEST(CheckpointSave, sizeOnDiskIsAsPlanned) {
  TemporaryFolder folder;
  const plan::Plan plan = makePlan();
  writeAt(plan, folder.path("ckpt"), 7);
  uint64_t bytes = 0;
  for (const auto &entry : fs::directory_iterator(folder.path("ckpt/step-000007")))
    bytes += entry.file_size();
  EXPECT_LE(bytes, bytesNeeded(plan));
  constexpr uint64_t manifestBytes = 4096;
  EXPECT_GT(bytes, bytesNeeded(plan) - manifestBytes);
}

// A bit that changes between memory and disk is found by the save, of whichever rank it is, and named.
TEST(CheckpointSave, whatIsReadBackIsComparedWithWhatWasWritten) {
  const plan::Plan plan = makePlan();
  const std::pair<int64_t, const char *> places[] = {{3, "rank 2's part"}, // the head, on the second stage
                                                     {400 + 3, "rank 1's part"},
                                                     {400 + 4 * 300 * 1000 - 3, "rank 0's part"}};
  for (const auto &[fromEnd, words] : places) {
    TemporaryFolder folder;
    writeAt(plan, folder.path("ckpt"), 6);
    SimulatedRanks ranks(plan);
    int numMeetings = 0;
    ranks.afterAgreement = [&, fromEnd = fromEnd] {
      constexpr int whenAllHaveWritten = 4; // two of the probe, the file is reserved, its parts are written
      if (++numMeetings == whenAllHaveWritten)
        flipByte(folder.path("ckpt/step-000007.partial/model.safetensors"), fromEnd);
    };
    for (const auto &result : ranks.write(folder.path("ckpt"), stateAt(7))) {
      ASSERT_FALSE(result);
      EXPECT_NE(result.status().message().find(words), std::string::npos) << result.status().message();
    }
    EXPECT_EQ(Checkpoint::open(folder.path("ckpt"))->state().step, 6);
    EXPECT_FALSE(fs::exists(folder.path("ckpt/step-000007.partial")));
  }
}

TEST(CheckpointSave, aRunThatEndedBetweenTwoRenamesIsUnderstood) {
  TemporaryFolder folder;
  const plan::Plan plan = makePlan();
  for (int64_t step : {6, 7})
    writeAt(plan, folder.path("ckpt"), step);
  const fs::path at = folder.path("ckpt/step-000007"), replaced = at.string() + ".replaced";
  fs::rename(at, replaced);
  auto opened = Checkpoint::open(folder.path("ckpt"));
  ASSERT_TRUE(opened) << opened.status().message();
  EXPECT_EQ(opened->state().step, 7);
  EXPECT_EQ(stepsIn(folder.path("ckpt")), (std::vector<int64_t>{6, 7}));
  fs::create_directory(folder.path("only"));
  fs::rename(replaced, folder.path("only/step-000007.replaced"));
  EXPECT_FALSE(isUnused(folder.path("only")));
  fs::rename(folder.path("only/step-000007.replaced"), replaced);
  removeUnfinished(folder.path("ckpt"));
  EXPECT_TRUE(fs::exists(at));
  EXPECT_FALSE(fs::exists(replaced));
  // Its successor is there: it is no more than what the next run reclaims.
  writeAt(plan, folder.path("ckpt"), 7);
  fs::create_directory(replaced);
  fs::create_directory(folder.path("ckpt/step-000003.partial"));
  EXPECT_EQ(Checkpoint::open(folder.path("ckpt"))->path(), at.string());
  removeUnfinished(folder.path("ckpt"));
  EXPECT_FALSE(fs::exists(replaced));
  EXPECT_FALSE(fs::exists(folder.path("ckpt/step-000003.partial")));
  EXPECT_EQ(stepsIn(folder.path("ckpt")), (std::vector<int64_t>{6, 7}));
}

TEST(CheckpointSave, verificationNamesEveryDamagedOne) {
  TemporaryFolder folder;
  const plan::Plan plan = makePlan();
  for (int64_t step : {5, 6, 7})
    writeAt(plan, folder.path("ckpt"), step);
  flipByte(folder.path("ckpt/step-000006/model.safetensors"), 100);
  auto all = verify(folder.path("ckpt"), &plan, Purpose::training);
  ASSERT_TRUE(all) << all.status().message();
  ASSERT_EQ(all->size(), 3u);
  EXPECT_TRUE((*all)[0].status && (*all)[2].status);
  EXPECT_EQ((*all)[2].step, 7);
  EXPECT_EQ((*all)[2].numTensors, 3u);
  EXPECT_NE((*all)[1].status.message().find("step-000006/model.safetensors: damaged"), std::string::npos);
  auto one = verify(folder.path("ckpt/step-000007"), nullptr, Purpose::training);
  ASSERT_TRUE(one && one->size() == 1);
  EXPECT_TRUE(one->front().status);
  plan::Plan other = plan;
  other.values[2].name = "tail";
  EXPECT_FALSE(verify(folder.path("ckpt/step-000007"), &other, Purpose::training)->front().status);
  EXPECT_FALSE(verify(folder.path("nothing"), nullptr, Purpose::training));
}
