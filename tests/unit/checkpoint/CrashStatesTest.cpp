// SPDX-License-Identifier: Apache-2.0
// Proves that a crash of the host at any moment of a save leaves the last checkpoint that was told as done whole: every
// state of the disk that the recorded calls allow is made and read. And that this finds an order of calls that is
// wrong.
#include "runtime/checkpoint/Retention.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/checkpoint/RecordedFiles.h"
#include "tests/unit/checkpoint/SimulatedRanks.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace dg;
using namespace dg::checkpoint;
using dg::test::FileChange;
using dg::test::FileTree;
using dg::test::keptValue;
using dg::test::SimulatedRanks;
using dg::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

constexpr int64_t numElements = 2500; // some blocks of 4 KiB

plan::Plan makePlan() {
  plan::Plan plan;
  plan.model.name = "toy";
  plan.mesh.sizes = {1, 2, 1};
  plan.values = {keptValue(plan.mesh, "weight", 0, {numElements}, {""}),
                 keptValue(plan.mesh, "momentum", 0, {50, 10}, {"data", ""}, plan::ValueKind::state)};
  return plan;
}

/// Every element is the number of the save.
void save(const plan::Plan &plan, const std::string &directory, int64_t step, float number) {
  SimulatedRanks ranks(plan);
  for (int64_t rank = 0; rank < plan.mesh.numRanks(); ++rank)
    for (plan::ValueId id = 0; id < plan.values.size(); ++id)
      std::fill(ranks.valueOf(rank, id).begin(), ranks.valueOf(rank, id).end(), number);
  TrainingState state;
  state.model = "toy";
  state.step = step;
  for (const auto &result : ranks.write(directory, state))
    ASSERT_TRUE(result) << result.status().message();
  test::note(uint64_t(number)); // from here on it is told as done
}

/// What a resumed run finds, or "" if nothing is wrong with it.
std::string findWrong(const plan::Plan &plan, const std::string &directory, uint64_t lastNumber) {
  auto opened = Checkpoint::open(directory);
  if (!opened)
    return lastNumber == 0 && isUnused(directory) ? "" : opened.status().message();
  SimulatedRanks ranks(plan);
  SimulatedRanks::Values values(ranks, 0);
  if (Status status = opened->check(plan, Purpose::training); !status)
    return status.message();
  if (Status status = opened->restore(plan, plan.mesh.coordinatesOf(0), values); !status)
    return status.message();
  const std::vector<float> &weight = ranks.valueOf(0, 0);
  if (weight.front() < float(lastNumber) || weight != std::vector<float>(weight.size(), weight.front()))
    return fmt::format("holds {} … {}, not {}", weight.front(), weight.back(), lastNumber);
  std::error_code error;
  if (fs::path best = fs::path(directory) / bestName; fs::is_symlink(best, error))
    return Checkpoint::open(best.string()).status().message();
  return "";
}

/// Looks at every crash state of what `run` does in a folder; returns what is wrong with the first that is not whole.
std::string findLoss(const char *what, const std::function<void(const plan::Plan &, const std::string &)> &run,
                     const std::function<void(std::vector<FileChange> &)> &alter = {}) {
  TemporaryFolder folder;
  const plan::Plan plan = makePlan();
  fs::create_directory(folder.path("ckpt"));
  test::beginRecording(folder.path("ckpt"));
  run(plan, folder.path("ckpt"));
  std::vector<FileChange> changes = test::endRecording();
  // Nothing was missed: what was recorded makes what is there.
  EXPECT_EQ(applyAll(changes).describe(), FileTree::read(folder.path("ckpt")).describe());
  if (alter)
    alter(changes);
  const uint64_t seed = std::random_device()();
  std::mt19937_64 random(seed);
  size_t numDistinct = 0;
  std::string wrong;
  size_t numStates = forEachCrash(changes, random, [&](const FileTree &tree, uint64_t lastNumber) {
    ++numDistinct;
    const std::string at = folder.path("crash");
    tree.makeAt(at);
    if (std::string found = findWrong(plan, at, lastNumber); !found.empty() && wrong.empty())
      wrong = fmt::format("after save {}: {}", lastNumber, found);
    fs::remove_all(at);
    return wrong.empty();
  });
  fmt::print("{}: {} changes, {} crash states, {} distinct (seed {})\n", what, changes.size(), numStates, numDistinct,
             seed);
  return wrong;
}

void saveThree(const plan::Plan &plan, const std::string &directory) {
  for (int64_t number : {1, 2, 3}) {
    save(plan, directory, 10 * number, float(number));
    retain(directory, {1, 10 * number});
  }
}

void saveTwice(const plan::Plan &plan, const std::string &directory) {
  save(plan, directory, 10, 1);
  save(plan, directory, 10, 2);
}

} // namespace

TEST(CrashStates, theLastSaveIsWhole) { EXPECT_EQ(findLoss("saves, with --keep and --keep-best", saveThree), ""); }

TEST(CrashStates, aSaveThatReplacesAnotherIsWhole) { EXPECT_EQ(findLoss("exchange", saveTwice), ""); }

TEST(CrashStates, aSaveThatReplacesAnotherByTwoRenamesIsWhole) {
  test::refuseRenameFlags(true);
  EXPECT_EQ(findLoss("two renames", saveTwice), "");
  test::refuseRenameFlags(false);
}

// The test of the test: without the promises of fsync, of files or of folders, there are states that lose a save.
TEST(CrashStates, aMissingSynchronisationIsFound) {
  for (bool ofFolders : {false, true})
    EXPECT_NE(findLoss(ofFolders ? "no fsync of folders" : "no fsync of files", saveThree,
                       [&](std::vector<FileChange> &changes) {
                         const FileTree tree = applyAll(changes);
                         std::erase_if(changes, [&](const FileChange &change) {
                           return change.kind == FileChange::Kind::synchronise &&
                                  tree.nodes.at(change.node).isFolder == ofFolders;
                         });
                       }),
              "");
}
