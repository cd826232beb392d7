// SPDX-License-Identifier: Apache-2.0
// Proves that a checkpoint that does not fit fails on every rank with file and bytes, leaves nothing behind, and leaves
// the previous one good. A limit on file sizes stands for the full disk everywhere; where a small file system can be
// mounted, the disk is really full.
#include "runtime/checkpoint/Checkpoint.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/checkpoint/SimulatedRanks.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sys/mount.h>
#include <sys/resource.h>

using namespace dg;
using namespace dg::checkpoint;
using dg::test::keptValue;
using dg::test::SimulatedRanks;
using dg::test::TemporaryFolder;
namespace fs = std::filesystem;

static plan::Plan largePlan() {
  plan::Plan plan;
  plan.mesh.sizes = {1, 2, 1};
  plan.values = {keptValue(plan.mesh, "weight", 0, {500, 1000}, {"", ""})};
  return plan;
}

static void expectNoRoom(const std::string &directory, const TrainingState &at) {
  plan::Plan plan = largePlan();
  SimulatedRanks ranks(plan);
  for (const auto &result : ranks.write(directory, at)) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.status().kind(), ErrorKind::unwritten);
    EXPECT_NE(result.status().message().find("model.safetensors"), std::string::npos) << result.status().message();
    EXPECT_NE(result.status().message().find("2000128 bytes"), std::string::npos) << result.status().message();
  }
  EXPECT_FALSE(fs::exists(directory + "/" + nameOfStep(at.step)));
  EXPECT_FALSE(fs::exists(directory + "/" + nameOfStep(at.step) + ".partial"));
}

static void writeGood(const std::string &directory, const TrainingState &at) {
  plan::Plan plan = largePlan();
  SimulatedRanks ranks(plan);
  for (const auto &result : ranks.write(directory, at))
    ASSERT_TRUE(result) << result.status().message();
}

TEST(FullDisk, limitOnFileSizes) {
  TemporaryFolder folder;
  TrainingState first, second;
  first.step = 1, second.step = 2;
  writeGood(folder.path("ckpt"), first);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit small{1 << 20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  expectNoRoom(folder.path("ckpt"), second);
  setrlimit(RLIMIT_FSIZE, &before);
  auto previous = Checkpoint::open(folder.path("ckpt"));
  ASSERT_TRUE(previous) << previous.status().message();
  EXPECT_EQ(previous->state().step, 1);
}

TEST(FullDisk, smallFileSystem) {
  TemporaryFolder folder;
  fs::create_directory(folder.path("disk"));
  if (mount("tmpfs", folder.path("disk").c_str(), "tmpfs", 0, "size=3m") != 0)
    GTEST_SKIP() << "mounting a file system is not allowed here";
  TrainingState first, second;
  first.step = 1, second.step = 2;
  std::string directory = folder.path("disk/ckpt");
  writeGood(directory, first);
  expectNoRoom(directory, second);
  {
    auto previous = Checkpoint::open(directory);
    ASSERT_TRUE(previous) << previous.status().message();
    EXPECT_EQ(previous->state().step, 1);
  }
  EXPECT_EQ(umount(folder.path("disk").c_str()), 0);
}
