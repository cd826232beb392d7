// SPDX-License-Identifier: Apache-2.0
// Proves that the first failure of any kind ends the launch soon, is told in one block that names the guilty rank, and
// leaves nothing behind.
#include "tests/unit/launch/LauncherProcess.h"

#include "runtime/launch/ranks/RankProcess.h"
#include "runtime/transport/UcxTransport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <random>
#include <sched.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dg;
using namespace dg::test;
using std::chrono::seconds;

namespace {

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

std::string hostAndPid(LauncherProcess &launch, int rank) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return fmt::format("rank {} (host {}, pid {})", rank, host, launch.shared().pids[rank].load());
}

Result<std::unique_ptr<Transport>> connect(RankContext &context) {
  return makeUcxTransport(context.rank(), context.numRanks(), [&](const std::string &address) {
    return context.allGather(address, deadlineIn(seconds(20)));
  });
}

// A rank that writes past its buffers may write to any descriptor; a length of 2^60 must not become memory.
TEST(Failure, bytesThatAreNoMessageAreTheRanksDefect) {
  LauncherProcess launch;
  launch.start({.numRanks = 2}, [](RankContext &context) {
    constexpr uint64_t header[] = {0, 0, uint64_t(1) << 60};
    constexpr int mostDescriptors = 256;
    int type = 0;
    socklen_t size = sizeof type;
    for (int file = 3; context.rank() == 1 && file < mostDescriptors; ++file)
      if (getsockopt(file, SOL_SOCKET, SO_TYPE, &type, &size) == 0)
        (void)!send(file, header, sizeof header, MSG_NOSIGNAL);
    (void)context.barrier(deadlineIn(seconds(20)));
    hang();
    return 0;
  });
  EXPECT_EQ(exitCodeOf(ErrorKind::defect), launch.finish());
  EXPECT_TRUE(has(launch.errors, hostAndPid(launch, 1))) << launch.errors;
  EXPECT_TRUE(has(launch.errors, "sent its launcher bytes that are no message")) << launch.errors;
}

TEST(Failure, killedRankIsNamedWithWhatItDid) {
  unsigned seed = std::random_device()();
  int victim = int(seed % 3);
  SCOPED_TRACE(fmt::format("seed {}", seed));
  auto before = sharedMemoryNames();
  LauncherProcess launch;
  LaunchOptions options = {.numRanks = 3};
  options.describeTask = [](uint32_t task) { return fmt::format("'fc{}/matmul' (mlp.mlir:4:8)", task); };
  options.describeEvent = [](const LaunchEvent &event) {
    return fmt::format("{} {} {}\n", event.rank, event.step, event.text.substr(0, 4));
  };
  launch.start(options, [&](RankContext &context) {
    auto transport = connect(context);
    context.board().phase = uint32_t(RankPhase::training);
    context.board().step = 17;
    context.board().task = 1 + 1;
    LauncherProcess::ready(launch.shared());
    float value;
    auto request = (*transport)->startReceive(0, 1, &value, 4); // as a rank that waits for a message that never comes
    while ((*transport)->test(request) == Progress::pending)
      ;
    return 1;
  });
  ASSERT_TRUE(launch.awaitReady(3));
  auto start = std::chrono::steady_clock::now();
  kill(launch.shared().pids[victim], SIGKILL);
  EXPECT_EQ(69, launch.finish());
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
  std::string doing = "training, step 17, in task 'fc1/matmul' (mlp.mlir:4:8)";
  std::string expected = "dgrun: " + hostAndPid(launch, victim) + " was killed by signal 9 (SIGKILL) while " + doing +
                         "; if no one sent it, the host ran out of memory: see dmesg\n";
  for (int rank = 0; rank < 3; ++rank)
    if (rank != victim)
      expected += "  " + hostAndPid(launch, rank) + ": stopped by dgrun while " + doing + "\n";
  EXPECT_EQ(expected, launch.errors);
  EXPECT_EQ(fmt::format("{} 17 rank\n", victim), launch.output);
  EXPECT_TRUE(launch.areRanksGone(3));
  EXPECT_EQ(std::set<std::string>(), newSharedMemory(before));
}

// Ranks killed at any moment of set-up, in UCX or around it, leave no shared memory.
TEST(Failure, killedWhileConnectingLeavesNothing) {
  auto before = sharedMemoryNames();
  for (int round = 0; round < 30; ++round) {
    LauncherProcess launch;
    launch.start({.numRanks = 3}, [&](RankContext &context) {
      LauncherProcess::ready(launch.shared());
      auto transport = connect(context);
      hang();
      return 1;
    });
    ASSERT_TRUE(launch.awaitReady(3));
    usleep(useconds_t(round) * 700); // the moment is the parameter: from before UCX starts to after it is connected
    kill(launch.shared().pids[round % 3], SIGKILL);
    EXPECT_EQ(69, launch.finish());
    EXPECT_TRUE(has(launch.errors, hostAndPid(launch, round % 3) + " was killed by signal 9")) << launch.errors;
    EXPECT_TRUE(launch.areRanksGone(3));
  }
  EXPECT_EQ(std::set<std::string>(), newSharedMemory(before));
}

TEST(Failure, exitCodeOfASilentRankIsTold) {
  LauncherProcess launch;
  launch.start({.numRanks = 3}, [](RankContext &context) {
    if (context.rank() == 2)
      return 3;
    hang();
  });
  EXPECT_EQ(1, launch.finish());
  EXPECT_EQ("dgrun: " + hostAndPid(launch, 2) + " ended with exit code 3 while starting\n  " + hostAndPid(launch, 0) +
                ": stopped by dgrun while starting\n  " + hostAndPid(launch, 1) + ": stopped by dgrun while starting\n",
            launch.errors);
  EXPECT_TRUE(launch.areRanksGone(3));
}

// A library in the launcher that waits for any child takes a rank's end away.
TEST(Failure, rankWhoseEndIsNotKnownHasFailed) {
  LauncherProcess launch;
  launch.prepare = [] {
    std::signal(SIGCHLD, [](int) {
      const int before = errno;
      while (waitpid(-1, nullptr, WNOHANG) > 0)
        ;
      errno = before;
    });
  };
  // The launcher answers, so it is in its loop.
  launch.start({.numRanks = 1},
               [](RankContext &context) { return context.barrier(deadlineIn(seconds(10))).exitCode(); });
  EXPECT_EQ(1, launch.finish());
  EXPECT_EQ("dgrun: " + hostAndPid(launch, 0) +
                " ended while starting; how is not known: something else in dgrun has waited for it\n",
            launch.errors);
}

TEST(Failure, reportOfTheRankIsTold) {
  LauncherProcess launch;
  launch.start({.numRanks = 2}, [](RankContext &context) {
    if (context.rank() == 0)
      hang();
    context.board().phase = uint32_t(RankPhase::loading);
    Status status = Status::error(ErrorKind::badInput, "x.npy: found 3 dimensions, expected 2");
    context.reportFailure(status);
    std::fprintf(stderr, "last words\n");
    return status.exitCode();
  });
  EXPECT_EQ(65, launch.finish());
  EXPECT_EQ("[1] last words\ndgrun: " + hostAndPid(launch, 1) +
                " failed while loading: x.npy: found 3 dimensions, expected 2\n  " + hostAndPid(launch, 0) +
                ": stopped by dgrun while starting\n  last lines of rank 1:\n    last words\n",
            launch.errors);
}

// A rank that prints much before it fails: its last 20 lines end the block.
TEST(Failure, lastLinesOfTheRankAreTold) {
  LauncherProcess launch;
  launch.start({.numRanks = 2}, [](RankContext &context) {
    if (context.rank() == 0)
      hang();
    for (int line = 1; line <= 50; ++line)
      std::fprintf(stderr, "line %d\n", line);
    return 3;
  });
  EXPECT_EQ(1, launch.finish());
  std::string block = launch.errors.substr(launch.errors.find("last lines of rank 1:\n"));
  EXPECT_EQ(21, std::count(block.begin(), block.end(), '\n')) << block;
  EXPECT_TRUE(has(block, "    line 31\n") && has(block, "    line 50\n")) << block;
}

// "Waited for rank 1" comes first, but what happened to rank 1 is the cause.
TEST(Failure, causeIsPreferredToItsConsequence) {
  LauncherProcess launch;
  Shared &shared = launch.shared();
  launch.start({.numRanks = 3}, [&](RankContext &context) {
    if (context.rank() != 1) {
      context.reportFailure(Status::error(ErrorKind::runFailed, "waited for rank 1"), FailureOrigin::peer);
      LauncherProcess::ready(shared);
      return 1;
    }
    while (shared.numReady < 2)
      sched_yield();
    raise(SIGABRT);
    return 0;
  });
  EXPECT_EQ(70, launch.finish());
  EXPECT_TRUE(has(launch.errors, "dgrun: " + hostAndPid(launch, 1) + " was killed by signal 6 (SIGABRT)"))
      << launch.errors;
  EXPECT_FALSE(has(launch.errors, "waited")) << launch.errors;
}

// UCX ends a rank when another's death cuts a message: the rank stays, and is not the cause, however late that is
// known.
TEST(Failure, endOfATransportIsNotTheCause) {
  for (bool isAnyoneKilled : {true, false}) {
    LauncherProcess launch;
    launch.start({.numRanks = 2}, [&](RankContext &context) -> int {
      if (context.rank() == 0)
        outliveTransport(SIGABRT);
      usleep(isAnyoneKilled ? 500'000 : 20'000'000);
      raise(SIGKILL);
      return 0;
    });
    EXPECT_EQ(69, launch.finish());
    std::string cause = isAnyoneKilled
                            ? hostAndPid(launch, 1) + " was killed by signal 9 (SIGKILL)"
                            : hostAndPid(launch, 0) + " gave up while starting: UCX ended by signal 6 (SIGABRT)";
    EXPECT_EQ(0u, launch.errors.find("dgrun: " + cause)) << launch.errors;
    EXPECT_TRUE(launch.areRanksGone(2));
  }
}

// Who has reported that it waited in vain stays, does nothing more, and is not taken for the one that hangs.
TEST(Failure, whoHasReportedIsNotToBlame) {
  LauncherProcess launch;
  launch.start({.numRanks = 2}, [](RankContext &context) {
    context.board().phase = uint32_t(RankPhase::training);
    context.board().step = 5;
    context.board().waitingFor = int32_t(1 - context.rank()) + 1;
    usleep(context.rank() == 0 ? 0 : 300'000);
    Status status = Status::error(ErrorKind::lost, "waited for the other");
    context.reportFailure(status, FailureOrigin::peer);
    context.awaitStop(deadlineIn(seconds(25)));
    return status.exitCode();
  });
  EXPECT_EQ(69, launch.finish());
  EXPECT_EQ(0u, launch.errors.find("dgrun: " + hostAndPid(launch, 0) + " gave up while training")) << launch.errors;
}

TEST(Failure, rankThatDoesNotMoveIsToBlame) {
  LauncherProcess launch;
  launch.start({.numRanks = 2}, [](RankContext &context) {
    context.board().phase = uint32_t(RankPhase::training);
    context.board().step = uint64_t(4 + context.rank());
    if (context.rank() == 1)
      hang();
    context.board().waitingFor = 1 + 1;
    if (Status status = context.barrier(deadlineIn(std::chrono::milliseconds(200))); !status) {
      context.reportFailure(status, FailureOrigin::peer);
      return status.exitCode();
    }
    return 0;
  });
  EXPECT_EQ(69, launch.finish());
  EXPECT_TRUE(has(launch.errors,
                  " made no progress for 1 s while training, step 5; the other ranks did not come to the exchange "
                  "before its deadline\n  " +
                      hostAndPid(launch, 0) + ": stopped by dgrun while training, step 4, waiting for rank 1\n"))
      << launch.errors;
}

TEST(Failure, exceptionIsAFailureOfTheRank) {
  LauncherProcess launch;
  launch.start({.numRanks = 1}, [](RankContext &) -> int { throw std::runtime_error("no memory left"); });
  EXPECT_EQ(70, launch.finish());
  EXPECT_EQ("dgrun: " + hostAndPid(launch, 0) + " failed while starting: an exception ended the rank: no memory left\n",
            launch.errors);
}

TEST(Failure, rankThatLeavesOthersWaitingIsFound) {
  LauncherProcess launch;
  launch.start({.numRanks = 3}, [](RankContext &context) {
    return context.rank() == 1 ? 0 : context.barrier(deadlineIn(seconds(25))).exitCode();
  });
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(69, launch.finish());
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
  EXPECT_TRUE(has(launch.errors, hostAndPid(launch, 1) + " ended while rank ")) << launch.errors;
}

// A rank that blocks every signal still goes.
TEST(Failure, stubbornRankIsKilled) {
  LauncherProcess launch;
  Shared &shared = launch.shared();
  launch.start({.numRanks = 2}, [&](RankContext &context) {
    if (context.rank() == 0) {
      sigset_t all;
      sigfillset(&all);
      sigprocmask(SIG_BLOCK, &all, nullptr);
      LauncherProcess::ready(shared);
      hang();
    }
    while (shared.numReady < 1)
      sched_yield();
    return 3;
  });
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(1, launch.finish());
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
  EXPECT_TRUE(launch.areRanksGone(2));
  EXPECT_TRUE(has(launch.errors, hostAndPid(launch, 1) + " ended with exit code 3")) << launch.errors;
}

} // namespace
