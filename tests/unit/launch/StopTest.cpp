// SPDX-License-Identifier: Apache-2.0
// Proves that a launch which is asked to stop (Ctrl-C, SIGTERM, kill -9 of the launcher) does so, with the exit code of
// the design, and that no process or shared memory stays.
#include "tests/unit/launch/LauncherProcess.h"

#include "runtime/transport/UcxTransport.h"

#include <gtest/gtest.h>

#include <csignal>
#include <sched.h>

using namespace dg;
using namespace dg::test;
using std::chrono::seconds;

namespace {

/// Ranks that are connected and poll for ever, as in a step whose message never comes.
RankMain connectAndPoll(Shared &shared) {
  return [&shared](RankContext &context) {
    auto made = makeUcxTransport(context.rank(), context.numRanks(), [&](const std::string &address) {
      return context.allGather(address, deadlineIn(seconds(20)));
    });
    if (!made)
      return 1;
    float value;
    auto request = (*made)->startReceive(0, 1, &value, 4);
    LauncherProcess::ready(shared);
    while ((*made)->test(request) == Progress::pending)
      ;
    return 1;
  };
}

/// Ranks that train: they stop together when asked.
RankMain trainUntilAsked(Shared &shared) {
  return [&shared](RankContext &context) {
    for (uint64_t step = 1; context.mayStartStep(step); ++step) {
      shared.values[context.rank()] = step;
      if (step == 100)
        LauncherProcess::ready(shared);
      // Ranks drift apart, but depend on each other: a rank that stopped earlier than the rest would hang them here.
      for (int64_t other = 0; other < context.numRanks(); ++other)
        while (shared.values[other] + 3 < step)
          sched_yield();
    }
    return context.isShutdownRequested() ? 75 : 1;
  };
}

TEST(Stop, controlCStopsAllRanks) {
  auto before = sharedMemoryNames();
  LauncherProcess launch;
  launch.start({.numRanks = 3}, connectAndPoll(launch.shared()));
  ASSERT_TRUE(launch.awaitReady(3));
  auto start = std::chrono::steady_clock::now();
  for (int rank = 0; rank < 3; ++rank)
    kill(launch.shared().pids[rank], SIGINT); // a terminal sends it to everyone
  launch.send(SIGINT);
  EXPECT_EQ(130, launch.finish());
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
  EXPECT_EQ("dgrun: interrupted; all ranks were stopped\n", launch.errors);
  EXPECT_TRUE(launch.areRanksGone(3));
  EXPECT_EQ(std::set<std::string>(), newSharedMemory(before));
}

TEST(Stop, terminationLetsRanksSaveAtOneStep) {
  LauncherProcess launch;
  launch.start({.numRanks = 4}, trainUntilAsked(launch.shared()));
  ASSERT_TRUE(launch.awaitReady(4));
  launch.send(SIGTERM);
  EXPECT_EQ(75, launch.finish()) << launch.errors;
  EXPECT_EQ("", launch.errors);
  for (int rank = 1; rank < 4; ++rank)
    EXPECT_EQ(launch.shared().values[0].load(), launch.shared().values[rank].load());
}

// A batch system may signal only one of the processes.
TEST(Stop, terminationOfOneRankStopsAllAtOneStep) {
  LauncherProcess launch;
  launch.start({.numRanks = 4}, trainUntilAsked(launch.shared()));
  ASSERT_TRUE(launch.awaitReady(4));
  kill(launch.shared().pids[2], SIGTERM);
  EXPECT_EQ(75, launch.finish()) << launch.errors;
  for (int rank = 1; rank < 4; ++rank)
    EXPECT_EQ(launch.shared().values[0].load(), launch.shared().values[rank].load());
}

TEST(Stop, rankThatDoesNotSaveInTimeIsKilled) {
  LauncherProcess launch;
  LaunchOptions options = {.numRanks = 2};
  options.saveTime = std::chrono::milliseconds(1000);
  launch.start(options, connectAndPoll(launch.shared()));
  ASSERT_TRUE(launch.awaitReady(2));
  launch.send(SIGTERM);
  EXPECT_EQ(143, launch.finish());
  EXPECT_EQ("dgrun: SIGTERM came, and not every rank had left 1 s later; all ranks were killed\n", launch.errors);
  EXPECT_TRUE(launch.areRanksGone(2));
}

TEST(Stop, ranksThatCannotSaveEndWith143) {
  LauncherProcess launch;
  Shared &shared = launch.shared();
  launch.start({.numRanks = 2}, [&](RankContext &context) {
    LauncherProcess::ready(shared);
    while (!context.isShutdownRequested())
      sched_yield();
    return 143;
  });
  ASSERT_TRUE(launch.awaitReady(2));
  launch.send(SIGTERM);
  EXPECT_EQ(143, launch.finish());
  EXPECT_EQ("", launch.errors);
}

TEST(Stop, controlCEndsTheSavingToo) {
  LauncherProcess launch;
  Shared &shared = launch.shared();
  launch.start({.numRanks = 2}, [&](RankContext &context) {
    LauncherProcess::ready(shared);
    while (!context.isShutdownRequested())
      sched_yield();
    LauncherProcess::ready(shared);
    hang();
    return 0;
  });
  ASSERT_TRUE(launch.awaitReady(2));
  launch.send(SIGTERM);
  ASSERT_TRUE(launch.awaitReady(4));
  launch.send(SIGINT);
  EXPECT_EQ(130, launch.finish());
  EXPECT_TRUE(launch.areRanksGone(2));
}

TEST(Stop, deathOfTheLauncherTakesTheRanksAlong) {
  auto before = sharedMemoryNames();
  LauncherProcess launch;
  launch.start({.numRanks = 3}, connectAndPoll(launch.shared()));
  ASSERT_TRUE(launch.awaitReady(3));
  launch.send(SIGKILL);
  EXPECT_EQ(1000 + SIGKILL, launch.finish());
  EXPECT_TRUE(launch.areRanksGone(3));
  EXPECT_EQ(std::set<std::string>(), newSharedMemory(before));
}

} // namespace
