// SPDX-License-Identifier: Apache-2.0
// The ranks that one launcher has forked: their output, their lines to the launcher, their deaths. It tells events and
// obeys commands (LaunchMessage); what they mean for the job is the coordinator's business.
#pragma once

#include "runtime/launch/link/ControlSocket.h"
#include "runtime/launch/link/KeptMemory.h"
#include "runtime/launch/link/LaunchMessage.h"
#include "runtime/launch/link/PollSet.h"
#include "runtime/launch/link/SharedBoard.h"
#include "runtime/launch/ranks/LocalLauncher.h"
#include "runtime/launch/ranks/OutputRelay.h"

#include <csignal>
#include <ctime>
#include <unistd.h>

namespace dg {

/// One thread.
class LocalRanks {
public:
  using Sink = std::function<void(LaunchMessage)>;

  /// `options` outlives it. Events go to `sink`, from fork(), addTo()'s handlers, apply() and tick().
  LocalRanks(const LaunchOptions &options, RankPlacement placement, Sink sink);
  /// Kills what is left.
  ~LocalRanks();
  LocalRanks(const LocalRanks &) = delete;

  /// Starts the ranks; also anew, at `point`, when none is left. `foreign` are descriptors of this process that they
  /// must not keep.
  Status fork(const RankMain &rankMain, std::vector<int> foreign, const RestartPoint &point = {});
  void addTo(PollSet &set);
  void apply(const LaunchMessage &command);
  /// To be called at least every tenth of a second: deadlines, signals that reached a rank, progress.
  void tick();
  bool isAnyAlive() const;
  std::vector<RankProgress> progress();

  /// The launcher's own words, on stderr, in order with what ranks said; never blocks.
  void say(const std::string &text);
  /// The same with what options.describeEvent makes of it, on stdout. The one way to tell a failure once ranks were
  /// forked.
  void tell(LaunchEvent event);
  /// The last call: signals act again as they did before fork(), and what was said is waited for until it is read: as
  /// long as options.timeout, or a second unless `isPatient`. What is lost is told.
  void drainOutput(bool isPatient);

private:
  struct Child;
  Status systemError(const char *what) const;
  void onSignals();
  void onSocket(Child &child);
  void onDeath(Child &child);
  void deliver(const LaunchMessage &gathered);
  void signalAll(int number, int64_t except = -1);
  void stop(const LaunchMessage &command);
  void killAll();
  void giveUp();
  void finish();
  Status begin();
  Status watchSignals();
  void restoreSignals();
  int64_t rankOf(const Child &child) const;

  const LaunchOptions &options;
  const RankPlacement placement;
  const Sink sink;
  OutputQueue output{STDOUT_FILENO}, error{STDERR_FILENO}; ///< outlive the children's relays
  std::vector<Child> children;
  std::unique_ptr<KeptMemory> kept;   ///< null where ranks do not start anew
  std::unique_ptr<SharedBoard> board; ///< of the ranks that are there, or were the last
  sigset_t oldMask = {};
  struct sigaction oldChildAction = {};
  int signals = -1;
  timespec started = {};
  bool isForced = false; ///< someone was killed by a signal
  bool isStopping = false, isKillSent = false, isFinished = false, isTerminationTold = false;
  Deadline killDeadline = Deadline::max();
  Deadline cleanTime = Deadline::max(); ///< when what killed ranks have left is removed, while others run
};

} // namespace dg
