// SPDX-License-Identifier: Apache-2.0
// Signals, descriptors and environment of a new rank.
#include "runtime/launch/ranks/RankProcess.h"

#include "runtime/launch/link/ControlSocket.h"
#include "runtime/launch/link/Rendezvous.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace dg {
namespace {

/// A signal handler has no other way to its data. One per process: a process is one rank.
SharedBoard *boardOfHandler = nullptr;
int64_t indexOfHandler = 0;

void onTerminate(int) {
  if (boardOfHandler->isAbandoned())
    syscall(SYS_exit_group, 1); // at once: no library may hold it up
  boardOfHandler->requestShutdown();
}

void onSave(int) { boardOfHandler->requestSave(); }

void setSignals(const sigset_t &mask) {
  struct sigaction action = {};
  action.sa_handler = SIG_IGN;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  action.sa_handler = onTerminate;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR2, &action, nullptr);
  action.sa_handler = onSave;
  sigaction(SIGUSR1, &action, nullptr);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
}

/// `from` becomes descriptor `to`; -1 keeps what the launcher has.
void redirect(int from, int to) {
  if (from < 0)
    return;
  dup2(from, to);
  close(from);
}

int runGuarded(RankContext &context, const RankMain &rankMain) {
  try {
    return rankMain(context);
  } catch (const std::exception &exception) {
    context.reportFailure(Status::error(ErrorKind::defect, "an exception ended the rank: {}", exception.what()));
  } catch (...) {
    context.reportFailure(Status::error(ErrorKind::defect, "an exception of unknown type ended the rank"));
  }
  return 1;
}

} // namespace

void outliveTransport(int signal) {
  boardOfHandler->noteBreak(indexOfHandler, signal);
  while (!boardOfHandler->isAbandoned())
    usleep(1000); // the launcher decides within its own deadlines, and takes the rank along when it dies
  syscall(SYS_exit_group, 1);
  __builtin_unreachable();
}

void runRankProcess(const RankProcess &process, const RankMain &rankMain) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != process.launcher)
    _exit(1);                                                        // it died before the line above
  prctl(PR_SET_NAME, fmt::format("dgrun:{}", process.rank).c_str()); // what top and ps show
  boardOfHandler = process.board;
  indexOfHandler = process.localIndex;
  setSignals(process.signalMask);
  for (int descriptor : process.foreign)
    close(descriptor);
  if (process.rank > 0)
    redirect(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  redirect(process.output, STDOUT_FILENO);
  redirect(process.error, STDERR_FILENO);
  if (process.output >= 0)
    setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); // a killed rank's last lines are the interesting ones

  const RankPlacement &placement = *process.placement;
  setenv("RANK", std::to_string(process.rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(placement.firstLocalRank + process.localIndex).c_str(), 1);
  setenv("WORLD_SIZE", std::to_string(placement.numRanks).c_str(), 1);
  forgetSecretInEnvironment(); // the job is the launchers' to talk about

  int code;
  {
    RankContext context(process.localIndex, placement, *process.board, std::make_unique<ControlSocket>(process.socket),
                        process.keys, process.kept);
    code = runGuarded(context, rankMain);
    std::fflush(nullptr);
  }
  _exit(code);
}

} // namespace dg
