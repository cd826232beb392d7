// SPDX-License-Identifier: Apache-2.0
// `dgrun -n N` on one host: forks the ranks, lets them meet, passes their output on, and watches them. The first
// failure stops all of them and is told in one block. Nothing of a launch has a name on the machine: two launches
// cannot meet.
#pragma once

#include "runtime/launch/link/LaunchMessage.h"
#include "runtime/launch/link/RankContext.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dg {

/// What a rank runs; its return value is the rank's exit code. An exception that leaves it is reported and ends the
/// rank with 1.
using RankMain = std::function<int(RankContext &)>;

/// What a launcher tells, beside what its ranks do: the failure that ended the launch, or what holds up the run.
struct LaunchEvent {
  const char *kind = "failure"; ///< or straggler, silence, waiting, recovered, restart, snapshot
  int64_t rank = -1;            ///< -1: no rank's, as Ctrl-C
  uint64_t step = 0;
  std::string text = {};           ///< the sentence, without "dgrun: "; empty: only stdout is told
  std::string host = {}, job = {}; ///< of the launcher that tells it; see RankPlacement::jobId
  std::vector<std::pair<const char *, int64_t>> numbers = {}; ///< more of the event
};

struct LaunchOptions {
  std::string tool = "dgrun"; ///< opens every message
  int64_t numRanks = 1;
  /// "'fc1/matmul' (mlp.mlir:4:8)" for a plan task id; called in the launcher after a failure.
  std::function<std::string(uint32_t task)> describeTask = nullptr;
  /// What goes to stdout about an event (--json), beside the sentence on stderr. Every launch whose exit code is
  /// neither 0 nor that of ranks which left as SIGTERM asked them to has told one failure.
  std::function<std::string(const LaunchEvent &)> describeEvent = nullptr;
  /// Called when the ranks are gone and the exit code is not 0, before output is waited for, which a second Ctrl-C may
  /// end: what they left half-written is removed here.
  std::function<void()> onBadEnd = nullptr;
  /// All launchers of the job print to one place (srun, mpirun): then only node 0 tells why the job ended.
  bool isOutputShared = false;
  /// After a failure or Ctrl-C: how long ranks may take to go by themselves before SIGKILL.
  std::chrono::milliseconds stopTime{1000};
  /// A stop before the first step loses nothing: the same command continues from a checkpoint.
  bool isResumable = false;
  /// Ctrl-C asks the ranks to save and leave, as SIGTERM does; a second one ends them at once.
  bool savesOnInterrupt = false;
  /// After so long without a sign of another launcher it is lost; at half of it a wait is told.
  std::chrono::milliseconds timeout{30000};
  /// After SIGTERM: how long ranks may take to save and go before SIGKILL.
  std::chrono::milliseconds saveTime{25000};
  /// After a failure that is no fault of the job, ranks start anew so often without coming to another snapshot or
  /// checkpoint.
  int64_t maxRestarts = 0;
  /// The step after which the run begins.
  int64_t firstStep = 0;
  /// Bytes of one snapshot of a rank; may be empty.
  std::function<uint64_t(int64_t rank)> snapshotBytes = nullptr;
  /// The step of the latest checkpoint that the run has written, asked by the coordinator when no rank is left; may be
  /// empty.
  std::function<std::optional<int64_t>()> latestCheckpoint = nullptr;
  /// Called before ranks start anew, on every launcher.
  std::function<Status(const RestartPoint &)> onRestart = nullptr;
  /// A command for the shell of node 0, after every failure; empty: none.
  std::string onFailure = {};
};

/// The job that the batch system knows this process by; empty: there is none.
std::string jobIdOfEnvironment();

/// Tells a failure from before the ranks were forked, on stderr and stdout, and returns its exit code.
int endBeforeRanks(const LaunchOptions &options, const Status &status);

/// Tells that SIGTERM or SIGUSR2 (see HeldSignals) came before there were ranks, and returns the exit code of that.
int endStopped(const LaunchOptions &options);

/// Runs `rankMain` in numRanks processes and returns the exit code of the whole: 0 when all ranks returned 0; the code
/// of the failure (1, or 2 and 65 where the rank said so) with the other ranks stopped; 130 after Ctrl-C; 75 when
/// SIGTERM came and the ranks left with 75; 143 when SIGTERM came and they did not save. When it returns no rank is
/// alive. Call it from the main thread before any other thread exists (it forks) and before UCX or TBB are used.
int launchLocal(const LaunchOptions &options, const RankMain &rankMain);

} // namespace dg
