// SPDX-License-Identifier: Apache-2.0
// Proves that one run at a time holds a folder of checkpoints, that the lock of a process that is gone is replaced and
// named, that another host's is named with what to do, and that a run without the lock renames nothing.
#include "runtime/checkpoint/FolderLock.h"
#include "tests/unit/TemporaryFolder.h"
#include "tests/unit/checkpoint/SimulatedRanks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <thread>

using namespace dg;
using namespace dg::checkpoint;
using dg::test::TemporaryFolder;
namespace fs = std::filesystem;

namespace {

std::string contentOf(const std::string &path) {
  std::ifstream file(path);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

void expectWords(const Status &status, ErrorKind kind, std::initializer_list<std::string> words) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.kind(), kind);
  for (const std::string &word : words)
    EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
}

/// The lock of a child that has ended without releasing it, as SIGKILL leaves it.
std::string leaveLock(const std::string &directory) {
  pid_t child = ::fork();
  if (child == 0) {
    auto lock = FolderLock::take(directory);
    ::_exit(lock ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return contentOf(directory + "/run.lock");
}

} // namespace

TEST(FolderLock, oneAtATime) {
  TemporaryFolder folder;
  {
    auto first = FolderLock::take(folder.path("ckpt"));
    ASSERT_TRUE(first) << first.status().message();
    EXPECT_TRUE(checkFence(folder.path("ckpt"), first->run()));
    expectWords(FolderLock::take(folder.path("ckpt")).status(), ErrorKind::usage,
                {folder.path("ckpt"), first->run(), "process " + std::to_string(::getpid()), "wait for its end"});
  }
  EXPECT_FALSE(fs::exists(folder.path("ckpt"))) << "a folder in which nothing was saved";
  EXPECT_TRUE(FolderLock::take(folder.path("ckpt")));
}

TEST(FolderLock, aForkedChildDoesNotReleaseIt) {
  TemporaryFolder folder;
  auto lock = FolderLock::take(folder.path("ckpt"));
  ASSERT_TRUE(lock);
  pid_t child = ::fork();
  if (child == 0) {
    {
      FolderLock copy(std::move(*lock));
    }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(checkFence(folder.path("ckpt"), lock->run()));
}

TEST(FolderLock, ofAProcessThatIsGoneIsReplacedAndNamed) {
  TemporaryFolder folder;
  std::string left = leaveLock(folder.path("ckpt"));
  auto lock = FolderLock::take(folder.path("ckpt"));
  ASSERT_TRUE(lock) << lock.status().message();
  EXPECT_NE(lock->replaced().find(left.substr(0, left.find(' '))), std::string::npos) << lock->replaced();
  // The run that was taken for dead saves nothing more.
  expectWords(checkFence(folder.path("ckpt"), left.substr(0, left.find(' '))), ErrorKind::runFailed, {lock->run()});
}

TEST(FolderLock, ofAnotherHostIsNamedWithItsAge) {
  TemporaryFolder folder;
  fs::create_directory(folder.path("ckpt"));
  const std::string path = folder.path("ckpt/run.lock");
  folder.write("ckpt/run.lock", "0123456789abcdef elsewhere 42 7 boot/pid:[1]\n");
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(5));
  expectWords(FolderLock::take(folder.path("ckpt")).status(), ErrorKind::usage,
              {"0123456789abcdef", "process 42 on host elsewhere", "5 h", "remove " + path});
  folder.write("ckpt/run.lock", "");
  expectWords(FolderLock::take(folder.path("ckpt")).status(), ErrorKind::usage, {"remove " + path});
}

TEST(FolderLock, ofManyThatFindItStaleOneGetsIt) {
  for (int round = 0; round < 20; ++round) {
    TemporaryFolder folder;
    leaveLock(folder.path("ckpt"));
    std::atomic<int> numTaken = 0, numEnded = 0;
    constexpr int numThreads = 8;
    std::vector<std::thread> threads;
    for (int i = 0; i < numThreads; ++i)
      threads.emplace_back([&] {
        auto lock = FolderLock::take(folder.path("ckpt"));
        numTaken += lock.isOk() && checkFence(folder.path("ckpt"), lock->run()).isOk();
        for (++numEnded; numEnded < numThreads;)
          std::this_thread::yield();
      });
    for (std::thread &thread : threads)
      thread.join();
    EXPECT_EQ(numTaken, 1);
  }
}

TEST(FolderLock, withoutItNothingIsRenamed) {
  TemporaryFolder folder;
  auto lock = FolderLock::take(folder.path("ckpt"));
  ASSERT_TRUE(lock);
  plan::Plan plan;
  plan.model.name = "toy";
  plan.mesh.sizes = {1, 1, 1};
  plan.values = {test::keptValue(plan.mesh, "w", 0, {4}, {""})};
  test::SimulatedRanks ranks(plan);
  test::SimulatedRanks::Values values(ranks, 0);
  auto writer = CheckpointWriter::create(
      plan, 0, folder.path("ckpt"), [](const Status &mine) { return mine; }, false, lock->run());
  ASSERT_TRUE(writer) << writer.status().message();
  CheckpointSave save(std::move(*writer), 0, plan, values,
                      [](const std::string &mine) { return Result<std::vector<std::string>>(std::vector{mine}); });
  auto write = [&](int64_t step) {
    TrainingState state;
    state.model = "toy";
    state.step = step;
    Status begun = save.begin(state, CheckpointSave::Pace::atOnce);
    return begun ? save.advance(step, true).status() : begun;
  };
  ASSERT_TRUE(write(1));
  folder.write("ckpt/run.lock", "0123456789abcdef elsewhere 42 7 boot/pid:[1]\n");
  expectWords(write(2), ErrorKind::runFailed, {"0123456789abcdef", "elsewhere"});
  fs::remove(folder.path("ckpt/run.lock"));
  expectWords(write(2), ErrorKind::runFailed, {"was removed"});
  EXPECT_EQ(namedStepsIn(folder.path("ckpt")), std::vector<int64_t>{1});
  EXPECT_FALSE(fs::exists(folder.path("ckpt/step-000002.partial")));
}
