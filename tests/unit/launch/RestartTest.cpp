// SPDX-License-Identifier: Apache-2.0
// Proves that ranks start anew after a failure that is no fault of the job, with the memory that outlives them; that a
// loop of failures ends with the first one; and what signals do meanwhile.
#include "runtime/launch/link/KeptMemory.h"
#include "tests/unit/launch/LauncherProcess.h"

#include <gtest/gtest.h>

#include <csignal>
#include <unistd.h>

using namespace dg;
using namespace dg::test;

namespace {

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

size_t numOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

LaunchOptions restarting(int64_t numRanks, int64_t maxRestarts) {
  LaunchOptions options;
  options.numRanks = numRanks;
  options.maxRestarts = maxRestarts;
  options.snapshotBytes = [](int64_t) { return 4096; };
  options.describeEvent = [](const LaunchEvent &event) {
    std::string line = fmt::format("{} of {}", event.kind, event.rank);
    for (const auto &[name, number] : event.numbers)
      line += fmt::format(" {}={}", name, number);
    return line + "\n";
  };
  return options;
}

uint64_t &wordOf(RankContext &context) {
  return *reinterpret_cast<uint64_t *>(context.kept()->regions(context.index())[0].data());
}

Deadline soon() { return deadlineIn(std::chrono::seconds(20)); }

/// Reports the snapshot of that step and waits until all ranks have it.
void takeSnapshot(RankContext &context, int64_t step) {
  context.reportSnapshot(step);
  while (context.wholeSnapshot() != step)
    usleep(100);
}

} // namespace

TEST(Restart, goesOnWithWhatOutlivesTheRanks) {
  LauncherProcess launch;
  launch.start(restarting(3, 2), [](RankContext &context) {
    const uint64_t lives = ++wordOf(context);
    if (!context.barrier(soon()))
      return 1;
    if (lives == 1 && context.rank() == 1)
      raise(SIGKILL);
    if (lives == 2 && context.rank() == 2)
      raise(SIGSEGV);
    return context.barrier(soon()) && lives == 3 ? 0 : 9;
  });
  EXPECT_EQ(0, launch.finish()) << launch.errors;
  EXPECT_EQ(launch.output, "restart of 1 restart=1 from_step=0\nrestart of 2 restart=2 from_step=0\n");
  EXPECT_TRUE(has(launch.errors, "restart 1 of 2 goes on from where this run began")) << launch.errors;
  EXPECT_TRUE(launch.areRanksGone(3));
}

TEST(Restart, aLoopEndsWithItsFirstCause) {
  LauncherProcess launch;
  launch.start(restarting(2, 2), [](RankContext &context) {
    const uint64_t lives = ++wordOf(context);
    if (!context.barrier(soon()))
      return 1;
    if (context.rank() == int64_t(lives % 2))
      raise(lives == 1 ? SIGKILL : SIGABRT);
    hang();
  });
  EXPECT_EQ(69, launch.finish()) << launch.errors; // not 70, which the aborts are
  EXPECT_EQ(launch.output, "restart of 1 restart=1 from_step=0\nrestart of 0 restart=2 from_step=0\nfailure of 1\n");
  EXPECT_TRUE(has(launch.errors,
                  "2 restarts (--max-restarts) did not come to another snapshot or checkpoint; the first "
                  "failure since then: rank 1 ("))
      << launch.errors;
  EXPECT_TRUE(launch.areRanksGone(2));
}

TEST(Restart, theCountBeginsAnewWithASnapshot) {
  LauncherProcess launch;
  launch.start(restarting(2, 1), [](RankContext &context) {
    const uint64_t lives = ++wordOf(context);
    const auto from = context.wholeSnapshot();
    if (lives > 1 && from != int64_t(10 * (lives - 1)))
      return 9;
    if (lives == 6)
      return 0;
    takeSnapshot(context, int64_t(10 * lives));
    if (!context.barrier(soon()))
      return 1;
    if (context.rank() == 0)
      raise(SIGKILL);
    hang();
  });
  EXPECT_EQ(0, launch.finish()) << launch.errors;
  EXPECT_EQ(numOf(launch.output, "restart of 0 restart=1"), 5u) << launch.output;
  EXPECT_EQ(numOf(launch.output, "snapshot of -1 bytes=8192"), 5u) << launch.output;
  EXPECT_TRUE(has(launch.output, "restart=1 from_step=50")) << launch.output;
}

// A snapshot that one rank has and another has not is nobody's.
TEST(Restart, halfASnapshotDoesNotCount) {
  LauncherProcess launch;
  launch.start(restarting(2, 3), [](RankContext &context) {
    const uint64_t lives = ++wordOf(context);
    if (lives == 2)
      return context.wholeSnapshot() == int64_t(10) ? 0 : 9;
    takeSnapshot(context, 10);
    if (context.rank() == 0)
      context.reportSnapshot(20);
    if (!context.barrier(soon()))
      return 1;
    if (context.rank() == 1)
      raise(SIGKILL);
    hang();
  });
  EXPECT_EQ(0, launch.finish()) << launch.errors;
}

TEST(Restart, aDefectOfTheJobEndsIt) {
  for (ErrorKind kind : {ErrorKind::defect, ErrorKind::badInput, ErrorKind::usage, ErrorKind::unwritten}) {
    LauncherProcess launch;
    launch.start(restarting(2, 5), [kind](RankContext &context) {
      if (context.rank() == 0)
        hang();
      Status status = Status::error(kind, "the loss of step 3 is nan");
      context.reportFailure(status);
      context.awaitStop(soon());
      return status.exitCode();
    });
    EXPECT_EQ(exitCodeOf(kind), launch.finish());
    EXPECT_EQ(launch.output, "failure of 1\n");
  }
}

TEST(Restart, severalRanksAtOnceAreOneRestart) {
  LauncherProcess launch;
  launch.start(restarting(4, 1), [](RankContext &context) {
    const uint64_t lives = ++wordOf(context);
    if (!context.barrier(soon()))
      return 1;
    if (lives == 1 && context.rank() > 0)
      raise(SIGKILL);
    return context.barrier(soon()) ? 0 : 1;
  });
  EXPECT_EQ(0, launch.finish()) << launch.errors;
}

// SIGTERM that comes while ranks are stopped reaches those that start anew: they save and leave.
TEST(Restart, aRequestToSaveIsNotLost) {
  for (int signal : {SIGTERM, SIGUSR2}) {
    LauncherProcess launch;
    LaunchOptions options = restarting(2, 1);
    options.savesOnInterrupt = true;
    options.onBadEnd = [signal] { kill(getpid(), signal); };
    launch.start(std::move(options), [](RankContext &context) {
      const uint64_t lives = ++wordOf(context);
      if (!context.barrier(soon()))
        return 1;
      if (lives == 1 && context.rank() == 0)
        raise(SIGKILL);
      for (uint64_t step = 1; lives == 2; ++step, usleep(1000))
        if (!context.mayStartStep(step))
          return 75;
      hang();
    });
    EXPECT_EQ(75, launch.finish()) << launch.errors;
    EXPECT_EQ(numOf(launch.output, "restart of 0"), 1u);
  }
}

TEST(Restart, ctrlCEndsItAtOnce) {
  LauncherProcess launch;
  LaunchOptions options = restarting(2, 1000000);
  options.onFailure = "true";
  launch.start(std::move(options), [&](RankContext &context) -> int {
    LauncherProcess::ready(launch.shared());
    if (context.barrier(soon()) && context.rank() == 0)
      raise(SIGKILL);
    hang();
  });
  ASSERT_TRUE(launch.awaitReady(10));
  launch.send(SIGINT);
  EXPECT_EQ(130, launch.finish()) << launch.errors;
  EXPECT_TRUE(launch.areRanksGone(2));
}

TEST(Restart, theCommandIsToldOfEveryFailure) {
  LauncherProcess launch;
  LaunchOptions options = restarting(2, 1);
  options.onFailure = "echo \"command: $DG_FAILURE_RANK $DG_FAILURE_CODE $DG_RESTART ${DG_SECRET:-none}\"; exit 3";
  launch.prepare = [] { setenv("DG_SECRET", "much", 1); };
  launch.start(std::move(options), [](RankContext &context) -> int {
    if (context.barrier(soon()) && context.rank() == 1) {
      usleep(300000); // the command before has ended
      raise(SIGKILL);
    }
    hang();
  });
  EXPECT_EQ(69, launch.finish());
  EXPECT_TRUE(has(launch.errors, "command: 1 69 1 none\n")) << launch.errors;
  EXPECT_TRUE(has(launch.errors, "command: 1 69 0 none\n")) << launch.errors;
  EXPECT_EQ(numOf(launch.errors, "dgrun: --on-failure: the command ended with exit code 3\n"), 2u) << launch.errors;
  EXPECT_FALSE(has(launch.output, "command")) << launch.output;
}

TEST(Restart, tooLittleMemoryIsNamedWithItsBytes) {
  LauncherProcess launch;
  LaunchOptions options = restarting(2, 1);
  options.snapshotBytes = [](int64_t) { return uint64_t(1) << 45; };
  launch.start(std::move(options), [](RankContext &) { return 0; });
  EXPECT_EQ(2, launch.finish());
  EXPECT_TRUE(has(launch.errors, fmt::format("--snapshot-every: two snapshots of the 2 ranks here need {} bytes",
                                             (uint64_t(1) << 47) + 4096)))
      << launch.errors;
}
