// SPDX-License-Identifier: Apache-2.0
// Proves that a launch which is asked to stop (Ctrl-C, SIGTERM, kill -9 of the launcher) does so, with the exit code of
// the design, and that no process or shared memory stays.
#include "tests/unit/launch/LauncherProcess.h"

#include "runtime/launch/NodeLauncher.h"
#include "runtime/transport/UcxTransport.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

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
    context.mayStartStep(1);
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

std::string describeEvent(const LaunchEvent &event) {
  return fmt::format("{} of {}: {}\n", event.kind, event.rank, event.text);
}

TEST(Stop, controlCStopsAllRanks) {
  auto before = sharedMemoryNames();
  LauncherProcess launch;
  LaunchOptions options = {.numRanks = 3};
  options.describeEvent = describeEvent;
  launch.start(options, connectAndPoll(launch.shared()));
  ASSERT_TRUE(launch.awaitReady(3));
  auto start = std::chrono::steady_clock::now();
  for (int rank = 0; rank < 3; ++rank)
    kill(launch.shared().pids[rank], SIGINT); // a terminal sends it to everyone
  launch.send(SIGINT);
  EXPECT_EQ(130, launch.finish());
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
  EXPECT_EQ("dgrun: interrupted; all ranks were stopped\n", launch.errors);
  EXPECT_EQ("failure of -1: interrupted; all ranks were stopped\n", launch.output);
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
  options.describeEvent = describeEvent;
  launch.start(options, connectAndPoll(launch.shared()));
  ASSERT_TRUE(launch.awaitReady(2));
  launch.send(SIGTERM);
  EXPECT_EQ(143, launch.finish());
  EXPECT_EQ("dgrun: SIGTERM came, and not every rank had left 1 s later (--save-timeout); all ranks were killed\n",
            launch.errors);
  EXPECT_EQ(0u, launch.output.find("failure of -1: SIGTERM came")) << launch.output;
  EXPECT_TRUE(launch.areRanksGone(2));
}

TEST(Stop, ranksThatCannotSaveEndWith143) {
  LauncherProcess launch;
  Shared &shared = launch.shared();
  launch.start({.numRanks = 2}, [&](RankContext &context) {
    context.mayStartStep(1);
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

TEST(Stop, terminationBeforeTheFirstStepEndsAtOnce) {
  for (bool isResumable : {false, true}) {
    LauncherProcess launch;
    LaunchOptions options = {.numRanks = 2};
    options.describeEvent = describeEvent;
    options.isResumable = isResumable;
    launch.start(options, [&](RankContext &) -> int {
      LauncherProcess::ready(launch.shared());
      hang();
    });
    ASSERT_TRUE(launch.awaitReady(2));
    launch.send(SIGTERM);
    EXPECT_EQ(isResumable ? 75 : 143, launch.finish());
    EXPECT_EQ(0u, launch.errors.find("dgrun: SIGTERM came before the first step; ")) << launch.errors;
    EXPECT_EQ(isResumable, launch.output.empty()) << launch.output;
    EXPECT_TRUE(launch.areRanksGone(2));
  }
}

// Asked of the launcher or of a rank, again and again: all save before the same steps, and go on.
TEST(Stop, savesThatAreAskedForComeBeforeTheSameSteps) {
  LauncherProcess launch;
  Shared &shared = launch.shared();
  launch.start({.numRanks = 3, .savesOnInterrupt = true}, [&](RankContext &context) {
    uint64_t sum = 0;
    for (uint64_t step = 1; context.mayStartStep(step); ++step) {
      if (context.isSaveDue(step)) {
        sum = sum * 31 + step;
        if (!context.barrier(deadlineIn(seconds(20))))
          return 1;
        LauncherProcess::ready(shared);
      }
      shared.values[context.rank()] = sum;
      usleep(100);
    }
    return 75;
  });
  for (int round = 0; round < 10; ++round) {
    while (shared.pids[1] == 0)
      usleep(100);
    if (round % 2 == 0)
      kill(shared.pids[1], SIGUSR1);
    else
      launch.send(SIGUSR1);
    ASSERT_TRUE(launch.awaitReady(3 * (round + 1)));
  }
  launch.send(SIGUSR2);
  EXPECT_EQ(75, launch.finish()) << launch.errors;
  EXPECT_NE(0u, shared.values[0].load());
  for (int rank = 1; rank < 3; ++rank)
    EXPECT_EQ(shared.values[0].load(), shared.values[rank].load());
}

TEST(Stop, controlCEndsTheSavingToo) {
  LauncherProcess launch;
  Shared &shared = launch.shared();
  launch.start({.numRanks = 2}, [&](RankContext &context) {
    context.mayStartStep(1);
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

/// Ranks print to `target`, which takes nothing after a while; the launcher still does what it is asked to.
void expectControlCWorks(int target) {
  LauncherProcess launch;
  Shared &shared = launch.shared();
  launch.prepare = [&] { dup2(target, STDOUT_FILENO); };
  launch.start({.numRanks = 3}, [&](RankContext &context) {
    if (context.rank() == 0) {
      LauncherProcess::ready(shared);
      hang();
    }
    for (uint64_t line = 0;; ++line) {
      shared.values[context.rank()] = line;
      std::printf("a line that is printed again and again, faster than anyone would read it\n");
    }
    return 0;
  });
  ASSERT_TRUE(launch.awaitReady(1));
  // The pipes on the way and the launcher's queue are full: the ranks wait now.
  Deadline limit = deadlineIn(seconds(20));
  for (uint64_t last = 0, now; std::chrono::steady_clock::now() < limit; last = now) {
    usleep(200'000);
    if (now = shared.values[1] + shared.values[2]; now == last && now > 4000) // more than the pipes hold
      break;
  }
  EXPECT_EQ(0, fcntl(target, F_GETFL) & O_NONBLOCK) << "the open file is shared with whoever started dgrun";
  auto start = std::chrono::steady_clock::now();
  launch.send(SIGINT);
  EXPECT_EQ(130, launch.finish());
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
  EXPECT_EQ(0u, launch.errors.find("dgrun: interrupted; all ranks were stopped\ndgrun: nobody read the last "))
      << launch.errors;
  EXPECT_TRUE(launch.areRanksGone(3));
}

TEST(Stop, controlCEndsALaunchWhosePipeNobodyReads) {
  int pipes[2];
  ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
  expectControlCWorks(pipes[1]);
  close(pipes[0]);
  close(pipes[1]);
}

TEST(Stop, controlCEndsALaunchWhoseSocketNobodyReads) {
  int sockets[2];
  ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
  expectControlCWorks(sockets[1]);
  close(sockets[0]);
  close(sockets[1]);
}

TEST(Stop, controlCEndsALaunchWhoseTerminalIsStopped) {
  int user = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (user < 0 || grantpt(user) != 0 || unlockpt(user) != 0)
    GTEST_SKIP() << "there are no terminals here";
  int terminal = open(ptsname(user), O_RDWR | O_NOCTTY | O_CLOEXEC);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(1, write(user, "\x13", 1)); // Ctrl-S
  expectControlCWorks(terminal);
  close(user);
  close(terminal);
}

// A rank that prints faster than it is relayed does not keep the launcher from everything else, and loses nothing.
TEST(Stop, endlessOutputIsRelayedWhole) {
  int pipes[2];
  ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
  LauncherProcess launch;
  launch.prepare = [&] {
    dup2(pipes[1], STDOUT_FILENO);
    close(pipes[1]);
  };
  constexpr int numLines = 200'000;
  launch.start({.numRanks = 2}, [](RankContext &context) {
    for (int line = 0; context.rank() == 1 && line < numLines; ++line)
      std::printf("%d\n", line);
    return 0;
  });
  close(pipes[1]);
  FILE *reader = fdopen(pipes[0], "r");
  int line = 0, next = 0;
  while (std::fscanf(reader, "[1] %d\n", &next) == 1 && next == line)
    ++line;
  std::fclose(reader);
  EXPECT_EQ(numLines, line);
  EXPECT_EQ(0, launch.finish()) << launch.errors;
}

/// A coordinator that says what the test tells it to, and a real launcher that follows it with a rank that hangs.
class Following : public testing::Test {
protected:
  void SetUp() override {
    const char *secret = "0123456789abcdef"; // the launcher is a child, which would find a Secret empty
    point = std::move(*RendezvousPoint::listen("127.0.0.1", Secret(secret)));
    auto addresses = *resolveEndpoint(point->endpoint());
    launch.prepare = [=, this] {
      NodeOptions nodes;
      nodes.numNodes = 2, nodes.node = 1;
      nodes.coordinator.addresses = addresses;
      nodes.coordinator.secret = Secret(secret);
      nodes.coordinator.name = "test";
      nodes.coordinator.greeting.node = 1;
      LaunchOptions options = {.numRanks = 2};
      options.describeEvent = describeEvent;
      int code = launchNode(options, std::move(nodes), [this](RankContext &) {
        LauncherProcess::ready(launch.shared());
        hang();
        return 0;
      });
      std::fflush(nullptr);
      _exit(code);
    };
    launch.start({}, nullptr);
    Deadline limit = deadlineIn(seconds(20));
    std::optional<LaunchMessage> join;
    while (!join && std::chrono::steady_clock::now() < limit) {
      PollSet set;
      point->addTo(set);
      set.wait(std::chrono::milliseconds(10));
      for (Arrival &arrival : point->takeArrivals())
        link = std::move(arrival.link);
      if (link && link->fill())
        join = link->take();
    }
    ASSERT_TRUE(join);
    RankPlacement placement;
    placement.firstRank = 1, placement.numRanks = 2;
    link->queue({.kind = LaunchMessage::Kind::assign, .text = packPlacement(placement)});
    ASSERT_TRUE(link->flush());
    ASSERT_TRUE(launch.awaitReady(1));
  }

  LauncherProcess launch;
  std::unique_ptr<RendezvousPoint> point;
  std::unique_ptr<NodeLink> link;
};

TEST_F(Following, endOfTheJobEndsTheRanksAtOnce) {
  auto start = std::chrono::steady_clock::now();
  link->queue({.kind = LaunchMessage::Kind::end, .rank = 0, .number = 65, .text = packEnd("it is over", 17)});
  ASSERT_TRUE(link->flush());
  link.reset();
  EXPECT_EQ(65, launch.finish());
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
  EXPECT_EQ("dgrun: it is over\n", launch.errors);
  EXPECT_EQ("failure of 0: it is over\n", launch.output);
}

TEST_F(Following, lostCoordinatorIsAFailure) {
  link.reset();
  EXPECT_EQ(69, launch.finish());
  EXPECT_EQ(
      "failure of -1: the coordinator (node 0, test) is gone: its dgrun ended or was killed; the ranks of this node "
      "were stopped\n",
      launch.output);
}

} // namespace
