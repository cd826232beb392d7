// SPDX-License-Identifier: Apache-2.0
// The launcher that decides for the whole job: it lets ranks meet, agrees on where to stop, finds the cause of a
// failure and tells it. With one host there is no other launcher; with several it hears and commands them too.
#pragma once

#include "runtime/launch/FailureCommand.h"
#include "runtime/launch/FailureReport.h"
#include "runtime/launch/RestartRule.h"
#include "runtime/launch/StragglerWatch.h"
#include "runtime/launch/link/Rendezvous.h"
#include "runtime/launch/ranks/LocalRanks.h"

namespace dg {

/// One launcher of the job.
struct Member {
  std::string host;
  int64_t firstRank = 0, numRanks = 0;
  std::unique_ptr<NodeLink> link; ///< null: the coordinator itself, or one that is lost
  std::optional<int64_t> entered; ///< its answer to save
  bool isGone = false;            ///< none of its ranks is left, or it is lost
  bool isSilenceTold = false;
  Deadline heardAt = {};
};

/// One thread.
class Coordinator {
public:
  /// `members[0]` is this process, whose ranks are `placement`. `point` (may be null) is where the others came from;
  /// they come there again to see whether a silent line is open.
  Coordinator(const LaunchOptions &options, std::vector<Member> members, RankPlacement placement,
              std::unique_ptr<RendezvousPoint> point);

  /// Runs the job to its end and returns its exit code. When it returns, no rank of this process is alive.
  int run(const RankMain &rankMain);

private:
  enum class Mode { running, saving, stopping };

  std::string nameOf(const Member &member) const;
  void handle(size_t member, LaunchMessage event);
  void handleFromLink(size_t member);
  void onReport(const LaunchMessage &event);
  void onEnded(LaunchMessage event);
  void onAsked(int signal);
  void onEntered();
  void noteProgress(const std::string &packed);
  void answerExchanges();
  void findDeserter();
  void broadcast(const LaunchMessage &command);
  void lose(size_t member, const std::string &how);
  void stop(bool isAtOnce = false);
  void save();
  void saveAndGoOn();
  void tick();
  void checkLinks(Deadline now);
  void watchStragglers();
  void checkDeadlines(Deadline now);
  /// Whether every other launcher has said since that time that it lives, and with it what its ranks had met before.
  bool isEveryoneHeardSince(Deadline time) const;
  void refineCause();
  void tellWait(Deadline now);
  void onKept(int64_t rank, int64_t step);
  /// Runs the ranks until none is left.
  Status runOnce(const RankMain &rankMain, const RestartPoint &point);
  /// After a failure: where ranks start anew, or nothing.
  bool mayRestart() const;
  std::optional<RestartPoint> planRestart();
  void restart(const RestartPoint &point);
  void tellGoingOn(Deadline now);
  void tellCommand(const std::string &cause, int64_t restart);
  int finish();
  int end(int code, const LaunchEvent &why);
  void sayEnd(int code, const LaunchEvent &why);

  const LaunchOptions &options;
  std::vector<Member> members;
  std::vector<RankState> ranks;
  std::unique_ptr<RendezvousPoint> point;
  LocalRanks local;

  Mode mode = Mode::running;
  FailureReport failure;
  RestartRule restarts;
  FailureCommand command;
  int askedAnew = 0; ///< SIGTERM or another signal that came while there were no ranks to act on it
  StragglerWatch watch;
  int64_t straggler = -1;           ///< that the user was told of
  uint64_t numExchanges = 0;        ///< that have been answered
  size_t numWaiting = 0;            ///< ranks with a part of an exchange that is not answered
  const char *savedFor = "SIGTERM"; ///< what asked the ranks to save
  int interrupt = 0;                ///< SIGINT or SIGHUP, when that ended the job
  bool isSaveOverdue = false;
  Deadline saveDeadline = Deadline::max(); ///< of the first request
  Deadline failedAt = {};                  ///< until ranks that have started anew run steps
  bool wasSaving = false;                  ///< when ranks were stopped
  bool isPaused = false;                   ///< for SIGUSR1
  bool isStoppedEarly = false;             ///< before any step
  Deadline deadline = Deadline::max();     ///< of the mode
  Deadline explanationDeadline = Deadline::max();
  Deadline lastTick = {}, nextBeat = {}, nextLook = {}, nextWaitLine = {};
};

} // namespace dg
