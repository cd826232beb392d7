// SPDX-License-Identifier: Apache-2.0
// A launcher in a process of its own, so that a test can signal and kill it and read what it prints.
#pragma once

#include "runtime/launch/ranks/LocalLauncher.h"

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <sys/types.h>

namespace dg::test {

/// Memory that the test, the launcher and the ranks share.
struct Shared {
  std::atomic<int32_t> pids[8];
  std::atomic<uint64_t> values[8];
  std::atomic<int32_t> numReady;
};

class LauncherProcess {
public:
  LauncherProcess();
  ~LauncherProcess();

  /// Forks a process that runs launchLocal and exits with its code. Each rank's pid is noted before rankMain begins.
  void start(LaunchOptions options, const RankMain &rankMain);
  void send(int signal) const { kill(launcher, signal); }
  /// Returns when that many ranks have called ready().
  bool awaitReady(int count);
  static void ready(Shared &shared) { shared.numReady.fetch_add(1); }

  /// Waits for the launcher's end (30 s at most): exit code, or 1000 + signal. Fills `output` and `errors`.
  int finish();
  /// Whether every rank is gone (waits 10 s at most for the kernel).
  bool areRanksGone(int64_t numRanks);

  /// Runs in the launcher's process before the launch.
  std::function<void()> prepare;
  Shared &shared() { return *memory; }
  std::string output, errors;

private:
  static void kill(pid_t pid, int signal);
  Shared *memory;
  pid_t launcher = -1;
  int outputFile = -1, errorFile = -1;
};

/// Names in /dev/shm and SysV segments that are there now and not in `before`; waits 5 s for other jobs' short-lived
/// ones to go.
std::set<std::string> sharedMemoryNames();
std::set<std::string> newSharedMemory(const std::set<std::string> &before);

/// Does nothing until the launcher ends the rank; the way ranks hang in these tests.
[[noreturn]] void hang();

} // namespace dg::test
