// SPDX-License-Identifier: Apache-2.0
// `dgrun -n N` on one host: forks the ranks, lets them meet, passes their output on, and watches them. The first
// failure stops all of them and is told in one block. Nothing of a launch has a name on the machine: two launches
// cannot meet.
#pragma once

#include "runtime/launch/link/RankContext.h"

#include <functional>
#include <string>

namespace dg {

/// What a rank runs; its return value is the rank's exit code. An exception that leaves it is reported and ends the
/// rank with 1.
using RankMain = std::function<int(RankContext &)>;

/// The failure that ended a launch; rank -1: no rank's, as Ctrl-C.
struct RankFailure {
  int64_t rank = -1;
  int64_t pid = 0;
  uint64_t step = 0;
  std::string text; ///< the sentence, without "dgrun: "
};

struct LaunchOptions {
  std::string tool = "dgrun"; ///< opens every message
  int64_t numRanks = 1;
  /// "'fc1/matmul' (mlp.mlir:4:8)" for a plan task id; called in the launcher after a failure.
  std::function<std::string(uint32_t task)> describeTask = nullptr;
  /// Called once with the failure, after it was printed on stderr (for --json), whenever the exit code is neither 0 nor
  /// that of ranks which left as SIGTERM asked them to.
  std::function<void(const RankFailure &)> onFailure = nullptr;
  /// Called when the ranks are gone and the exit code is not 0, before output is waited for, which a second Ctrl-C may
  /// end: what they left half-written is removed here.
  std::function<void()> onBadEnd = nullptr;
  /// All launchers of the job print to one place (srun, mpirun): then only node 0 tells why the job ended.
  bool isOutputShared = false;
  /// After a failure or Ctrl-C: how long ranks may take to go by themselves before SIGKILL.
  std::chrono::milliseconds stopTime{1000};
  /// Ctrl-C asks the ranks to save and leave, as SIGTERM does; a second one ends them at once.
  bool savesOnInterrupt = false;
  /// After SIGTERM: how long ranks may take to save and go before SIGKILL.
  std::chrono::milliseconds saveTime{25000};
};

/// Tells a failure from before the ranks were forked, on stderr and to onFailure, and returns its exit code.
int endBeforeRanks(const LaunchOptions &options, const Status &status);

/// Runs `rankMain` in numRanks processes and returns the exit code of the whole: 0 when all ranks returned 0; the code
/// of the failure (1, or 2 and 65 where the rank said so) with the other ranks stopped; 130 after Ctrl-C; 75 when
/// SIGTERM came and the ranks left with 75; 143 when SIGTERM came and they did not save. When it returns no rank is
/// alive. Call it from the main thread before any other thread exists (it forks) and before UCX or TBB are used.
int launchLocal(const LaunchOptions &options, const RankMain &rankMain);

} // namespace dg
