// SPDX-License-Identifier: Apache-2.0
// Proves that a launch which goes well lets its ranks meet, keeps their output apart, and never meets another launch.
#include "tests/unit/launch/LauncherProcess.h"

#include "runtime/transport/UcxTransport.h"
#include "runtime/transport/collectives/Collectives.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

using namespace dg;
using namespace dg::test;
using std::chrono::seconds;

namespace {

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

TEST(Launch, ranksKnowWhoTheyAre) {
  LauncherProcess launch;
  launch.start({.numRanks = 3}, [](RankContext &context) {
    bool isRight = context.numRanks() == 3 && std::getenv("RANK") == std::to_string(context.rank()) &&
                   std::getenv("LOCAL_RANK") == std::to_string(context.rank()) &&
                   std::string(std::getenv("WORLD_SIZE")) == "3";
    return isRight ? 0 : 1;
  });
  EXPECT_EQ(0, launch.finish());
  EXPECT_EQ("", launch.errors);
}

TEST(Launch, oneRankWritesStraightThrough) {
  LauncherProcess launch;
  launch.start({.numRanks = 1}, [](RankContext &context) {
    std::printf("out\n");
    std::fprintf(stderr, "err\n");
    return context.barrier(deadlineIn(seconds(10))).exitCode();
  });
  EXPECT_EQ(0, launch.finish());
  EXPECT_EQ("out\n", launch.output);
  EXPECT_EQ("err\n", launch.errors);
}

TEST(Launch, outputOfOtherRanksCarriesTheirNumber) {
  LauncherProcess launch;
  launch.start({.numRanks = 2}, [](RankContext &context) {
    std::printf("out of %d\n", int(context.rank()));
    if (context.rank() == 1)
      std::printf("last line, no end"); // Rank 0 writes straight through: its last line would run into this one.
    std::fprintf(stderr, "err of %d\n", int(context.rank()));
    return 0;
  });
  EXPECT_EQ(0, launch.finish());
  EXPECT_TRUE(has("\n" + launch.output, "\nout of 0\n")) << launch.output;
  // In order, though rank 0's line may come between the two.
  size_t line = launch.output.find("[1] out of 1\n"), last = launch.output.find("[1] last line, no end\n");
  EXPECT_NE(last, std::string::npos) << launch.output;
  EXPECT_LT(line, last) << launch.output;
  EXPECT_TRUE(has(launch.errors, "[0] err of 0\n")) << launch.errors;
  EXPECT_TRUE(has(launch.errors, "[1] err of 1\n")) << launch.errors;
}

// Exchanges of many sizes, more than a socket holds at once, give everyone everything in rank order.
TEST(Launch, exchangesGiveEveryoneEverything) {
  LauncherProcess launch;
  launch.start({.numRanks = 4}, [](RankContext &context) {
    for (size_t bytes : {0, 1, 300, 3000000, 5})
      for (int round = 0; round < 3; ++round) {
        auto all = context.allGather(std::string(bytes + size_t(context.rank()), char('a' + context.rank())),
                                     deadlineIn(seconds(20)));
        if (!all || all->size() != 4)
          return 1;
        for (size_t rank = 0; rank < 4; ++rank)
          if ((*all)[rank] != std::string(bytes + rank, char('a' + rank)))
            return 1;
      }
    return context.barrier(deadlineIn(seconds(20))).exitCode();
  });
  EXPECT_EQ(0, launch.finish()) << launch.errors;
}

// A barrier really waits: nobody passes before the last one came.
TEST(Launch, barrierHoldsEveryone) {
  LauncherProcess launch;
  Shared &shared = launch.shared();
  launch.start({.numRanks = 3}, [&](RankContext &context) {
    for (uint64_t round = 1; round <= 50; ++round) {
      shared.values[context.rank()] = round;
      if (!context.barrier(deadlineIn(seconds(20))))
        return 1;
      for (int rank = 0; rank < 3; ++rank)
        if (shared.values[rank] < round)
          return 2;
      if (!context.barrier(deadlineIn(seconds(20))))
        return 1;
    }
    return 0;
  });
  EXPECT_EQ(0, launch.finish()) << launch.errors;
}

// Two jobs at the same moment, with the same ranks, tags and sizes, sum their own numbers only.
TEST(Launch, twoLaunchesSideBySideDoNotMeet) {
  auto before = sharedMemoryNames();
  auto rankMain = [](Shared &mine, Shared &other, uint64_t base) {
    return [&mine, &other, base](RankContext &context) {
      auto made = makeUcxTransport(context.rank(), 2, [&](const std::string &address) {
        return context.allGather(address, deadlineIn(seconds(20)));
      });
      if (!made)
        return 1;
      LauncherProcess::ready(mine);
      Deadline limit = deadlineIn(seconds(20));
      while (other.numReady < 2 && std::chrono::steady_clock::now() < limit) // both jobs are connected now
        sched_yield();
      auto sum = makeAllReduce(**made, {{0, 1}, size_t(context.rank())}, 0x10000, plan::DType::i64, 1000);
      for (uint64_t round = 0; round < 200; ++round) {
        std::vector<uint64_t> data(1000, base + round + uint64_t(context.rank()));
        sum->start(data.data(), data.data());
        Progress progress;
        while ((progress = sum->poll()) == Progress::pending)
          sched_yield();
        if (progress == Progress::failed || data != std::vector<uint64_t>(1000, 2 * (base + round) + 1))
          return 2;
      }
      return context.barrier(deadlineIn(seconds(20))).exitCode();
    };
  };
  LauncherProcess first, second;
  first.start({.numRanks = 2}, rankMain(first.shared(), second.shared(), 1000));
  second.start({.numRanks = 2}, rankMain(second.shared(), first.shared(), 5000000));
  EXPECT_EQ(0, first.finish()) << first.errors;
  EXPECT_EQ(0, second.finish()) << second.errors;
  EXPECT_EQ(std::set<std::string>(), newSharedMemory(before));
}

// Who starts dgrun may ignore SIGCHLD, which survives exec and takes the ends of children away.
TEST(Launch, ignoredChildSignalIsNoHindrance) {
  LauncherProcess launch;
  launch.prepare = [] { std::signal(SIGCHLD, SIG_IGN); };
  launch.start({.numRanks = 2}, [](RankContext &) { return 0; });
  EXPECT_EQ(0, launch.finish()) << launch.errors;
  LauncherProcess failing;
  failing.prepare = launch.prepare;
  failing.start({.numRanks = 2}, [](RankContext &context) { return context.rank() == 1 ? 3 : 0; });
  EXPECT_EQ(1, failing.finish());
  EXPECT_TRUE(has(failing.errors, "ended with exit code 3")) << failing.errors;
}

// However few descriptors there are, a launch either relays what its ranks print or says what it could not make.
TEST(Launch, tooFewDescriptorsAreTold) {
  int numFailed = 0, numGood = 0;
  for (rlim_t extra = 0; extra < 16; ++extra) {
    LauncherProcess launch;
    launch.prepare = [extra] {
      int next = dup(STDIN_FILENO); // the lowest that is free
      close(next);
      rlimit limit = {rlim_t(next) + extra, rlim_t(next) + extra};
      setrlimit(RLIMIT_NOFILE, &limit);
    };
    launch.start({.numRanks = 2}, [](RankContext &context) {
      if (context.rank() == 1)
        std::printf("hello\n");
      return 0;
    });
    int code = launch.finish();
    (code == 0 ? numGood : numFailed) += 1;
    EXPECT_EQ(code == 0 ? "[1] hello\n" : "", launch.output) << extra;
    if (code != 0)
      EXPECT_TRUE(has(launch.errors, "dgrun: cannot ")) << launch.errors;
  }
  EXPECT_GT(numFailed, 0);
  EXPECT_GT(numGood, 0);
}

TEST(Launch, noRanksIsAUsageError) {
  LauncherProcess launch;
  LaunchOptions options = {.numRanks = 0};
  options.describeEvent = [](const LaunchEvent &event) { return fmt::format("failure of {}\n", event.rank); };
  launch.start(options, [](RankContext &) { return 0; });
  EXPECT_EQ(2, launch.finish());
  EXPECT_EQ("failure of -1\n", launch.output);
  EXPECT_EQ("dgrun: found 0 ranks, expected at least 1; give -n a positive number\n", launch.errors);
}

} // namespace
