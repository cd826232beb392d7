// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/ranks/LocalRanks.h"

#include "runtime/launch/link/HeldSignals.h"
#include "runtime/launch/link/JobKeys.h"
#include "runtime/launch/ranks/OrphanSegments.h"
#include "runtime/launch/ranks/RankProcess.h"
#include "runtime/support/Printable.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace dg {

using Kind = LaunchMessage::Kind;
using Clock = std::chrono::steady_clock;

/// How long the kernel may take to remove a process after SIGKILL.
static constexpr std::chrono::milliseconds killTime{5000};

/// Ranks that start anew do not wait for the files of those before them to be removed, which takes a second.
static constexpr std::chrono::milliseconds cleanDelay{3000};

/// One rank as its launcher sees it.
struct LocalRanks::Child {
  pid_t pid = 0;
  int pidDescriptor = -1;
  bool isAlive = false, isBreakTold = false;
  uint32_t looks = 0, waits = 0;         ///< how often it was looked at, and seen to wait
  std::unique_ptr<ControlSocket> socket; ///< null once the rank has closed it
  LineHistory history;
  std::unique_ptr<OutputRelay> output, error;
  RankProgress last;
};

/// What a launcher and each of its ranks may have open, roughly: a socket, two pipes and the process for each rank; a
/// connection with each rank elsewhere; files, devices and the rendezvous.
static rlim_t descriptorsFor(const RankPlacement &placement) {
  constexpr rlim_t ofRank = 4, others = 64;
  return std::max(ofRank * rlim_t(placement.numLocal), rlim_t(placement.numRanks)) + others;
}

/// As far as the system lets us: who then has too few says so.
static void raiseDescriptorLimit(rlim_t needed) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
    return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
}

Status LocalRanks::systemError(const char *what) const {
  const int error = errno;
  rlimit limit = {};
  if (error != EMFILE || getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return Status::error(ErrorKind::runFailed, "cannot {}: {}", what, std::strerror(error));
  return Status::error(
      ErrorKind::usage,
      "cannot {}: {}; {} ranks of {} need up to {} of them on this host, and the limit is {}: raise it "
      "(ulimit -Hn, or LimitNOFILE of the service)",
      what, std::strerror(error), placement.numLocal, placement.numRanks, descriptorsFor(placement), limit.rlim_max);
}

static std::string describeBreak(int signal) {
  const char *name = sigabbrev_np(signal);
  return fmt::format("UCX ended by signal {} (SIG{}), as it does when a connection breaks in the middle of a message",
                     signal, name ? name : "?");
}

static sigset_t handledSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2})
    sigaddset(&set, number);
  return set;
}

LocalRanks::LocalRanks(const LaunchOptions &options, RankPlacement placement, Sink sink)
    : options(options), placement(std::move(placement)), sink(std::move(sink)),
      children(size_t(this->placement.numLocal)) {}

LocalRanks::~LocalRanks() {
  signalAll(SIGKILL);
  for (Child &child : children) {
    if (child.isAlive)
      waitpid(child.pid, nullptr, 0);
    if (child.pidDescriptor >= 0)
      close(child.pidDescriptor);
  }
  restoreSignals();
}

void LocalRanks::restoreSignals() {
  if (signals < 0)
    return;
  close(std::exchange(signals, -1));
  sigaction(SIGCHLD, &oldChildAction, nullptr);
  timespec now = {};
  sigset_t handled = handledSignals();
  while (sigtimedwait(&handled, nullptr, &now) > 0) // it would end the launcher a moment before it returns
    ;
  sigprocmask(SIG_SETMASK, &oldMask, nullptr);
}

/// What is there once, whatever becomes of the ranks.
Status LocalRanks::begin() {
  raiseDescriptorLimit(descriptorsFor(placement));
  clock_gettime(CLOCK_REALTIME, &started);
  if (options.maxRestarts > 0) {
    std::vector<uint64_t> bytes(size_t(placement.numLocal));
    for (int64_t index = 0; options.snapshotBytes && index < placement.numLocal; ++index)
      bytes[size_t(index)] = options.snapshotBytes(placement.firstRank + index);
    auto made = KeptMemory::make(bytes);
    if (!made)
      return made.status();
    kept = std::move(*made);
  }
  return watchSignals();
}

Status LocalRanks::watchSignals() {
  sigset_t handled = handledSignals();
  sigprocmask(SIG_BLOCK, &handled, &oldMask);
  signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) {
    Status status = systemError("watch for signals");
    sigprocmask(SIG_SETMASK, &oldMask, nullptr);
    return status;
  }
  // Who has started this process may have left SIGCHLD ignored; then a rank's end could not be asked for.
  sigaction(SIGCHLD, nullptr, &oldChildAction);
  if (oldChildAction.sa_handler == SIG_IGN || (oldChildAction.sa_flags & SA_NOCLDWAIT)) {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &action, nullptr);
  }
  return Status::ok();
}

Status LocalRanks::fork(const RankMain &rankMain, std::vector<int> foreign, const RestartPoint &point) {
  if (signals < 0)
    DG_RETURN_IF_ERROR(begin());
  Result<std::unique_ptr<SharedBoard>> made = SharedBoard::make(placement.numLocal);
  if (!made)
    return made.status();
  board = std::move(*made);
  if (point.snapshot)
    board->setWholeSnapshot(*point.snapshot);
  for (Child &child : children)
    if (child.pidDescriptor >= 0)
      close(child.pidDescriptor);
  children = std::vector<Child>(size_t(placement.numLocal));
  isStopping = isKillSent = isFinished = isTerminationTold = false;
  killDeadline = Deadline::max();
  cleanTime = point.generation > 0 ? Clock::now() + cleanDelay : Deadline::max();
  if (point.generation > 0 && options.onRestart)
    DG_RETURN_IF_ERROR(options.onRestart(point));
  std::fflush(nullptr); // or the children would write it again
  pid_t self = getpid();
  foreign.push_back(signals);
  for (Child &child : children) {
    int64_t rank = rankOf(child);
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
      return systemError("make a socket pair");
    child.socket = std::make_unique<ControlSocket>(sockets[0]);
    foreign.push_back(sockets[0]);
    // Rank 0 keeps the tool's stdout, so that --json stays clean, and a terminal, so that progress bars work.
    auto makeRelay = [&](OutputQueue &target, std::unique_ptr<OutputRelay> &relay, int &writeEnd) {
      int pipes[2];
      if (pipe2(pipes, O_CLOEXEC) != 0)
        return systemError("make a pipe for the output of a rank");
      relay = std::make_unique<OutputRelay>(pipes[0], target, fmt::format("[{}] ", rank), child.history);
      foreign.push_back(pipes[0]);
      writeEnd = pipes[1];
      return Status::ok();
    };
    bool keepsOutput = rank == 0;
    bool keepsError = rank == 0 && (placement.numRanks == 1 || isatty(STDERR_FILENO));
    RankProcess process;
    process.rank = rank;
    process.localIndex = &child - children.data();
    process.placement = &placement;
    process.launcher = self;
    process.socket = sockets[1];
    auto closeOurs = [&] {
      for (int descriptor : {process.socket, process.output, process.error})
        if (descriptor >= 0)
          close(descriptor);
    };
    Status piped = keepsOutput ? Status::ok() : makeRelay(output, child.output, process.output);
    if (piped && !keepsError)
      piped = makeRelay(error, child.error, process.error);
    if (!piped) {
      closeOurs();
      return piped;
    }
    process.signalMask = withoutHeld(oldMask);
    process.board = board.get();
    process.kept = kept.get();
    process.foreign = foreign;
    if (!placement.runKey.isEmpty())
      process.keys = pairKeysOf(point.generation > 0 ? runKeyOf(placement.runKey, point.generation) : placement.runKey,
                                rank, placement.numRanks);
    child.pid = ::fork();
    if (child.pid == 0)
      runRankProcess(process, rankMain);
    int forkError = errno;
    closeOurs();
    forget(process.keys.data(), process.keys.size() * sizeof(Digest)); // the next rank does not see them
    errno = forkError;
    if (child.pid < 0)
      return systemError("fork a rank");
    child.isAlive = true;
    child.pidDescriptor = int(syscall(SYS_pidfd_open, child.pid, 0));
    if (child.pidDescriptor < 0)
      return systemError("watch a rank (Linux 5.3 or newer is needed)");
    foreign.push_back(child.pidDescriptor);
  }
  return Status::ok();
}

int64_t LocalRanks::rankOf(const Child &child) const { return placement.firstRank + (&child - children.data()); }

bool LocalRanks::isAnyAlive() const {
  for (const Child &child : children)
    if (child.isAlive)
      return true;
  return false;
}

void LocalRanks::signalAll(int number, int64_t except) {
  for (Child &child : children)
    if (child.isAlive && rankOf(child) != except)
      kill(child.pid, number); // the process is not reaped yet, so the number is still its own
}

void LocalRanks::addTo(PollSet &set) {
  set.add(signals, POLLIN, [this] { onSignals(); });
  for (OutputQueue *queue : {&output, &error})
    if (queue->hasOutput())
      set.add(queue->descriptor(), POLLOUT, [queue] { queue->flush(); });
  for (Child &child : children) {
    if (child.socket)
      set.add(child.socket->descriptor(), short(POLLIN | (child.socket->hasOutput() ? POLLOUT : 0)),
              [this, &child] { onSocket(child); });
    for (std::unique_ptr<OutputRelay> *relay : {&child.output, &child.error})
      if (*relay && !(*relay)->isHeldUp())
        set.add((*relay)->descriptor(), POLLIN, [relay] {
          if (*relay && !(*relay)->move())
            relay->reset();
        });
    if (child.isAlive)
      set.add(child.pidDescriptor, POLLIN, [this, &child] { onDeath(child); });
  }
}

void LocalRanks::onSignals() {
  signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == ssize_t(sizeof info))
    sink({.kind = Kind::asked, .number = int64_t(info.ssi_signo)});
}

void LocalRanks::onSocket(Child &child) {
  if (!child.socket)
    return;
  bool isConnected = child.socket->flush();
  isConnected = child.socket->fill() && isConnected;
  std::vector<LaunchMessage> told;
  while (std::optional<Frame> frame = child.socket->take()) {
    if (frame->kind == FrameKind::gather)
      told.push_back({.kind = Kind::part, .rank = rankOf(child), .text = std::move(frame->payload)});
    else if (frame->kind == FrameKind::kept)
      told.push_back({.kind = Kind::kept, .rank = rankOf(child), .number = int64_t(frame->number)});
    else
      told.push_back({.kind = Kind::report,
                      .rank = rankOf(child),
                      .number = int64_t(frame->number % 256) + (frame->origin == FailureOrigin::own ? 0 : 256),
                      .text = std::move(frame->payload)});
  }
  if (child.socket->isAltered()) {
    told.push_back({.kind = Kind::report,
                    .rank = rankOf(child),
                    .number = exitCodeOf(ErrorKind::defect),
                    .text = "sent its launcher bytes that are no message: something in this rank writes where it must "
                            "not"});
    isConnected = false;
  }
  if (!isConnected)
    child.socket.reset();
  for (LaunchMessage &message : told)
    sink(std::move(message));
}

void LocalRanks::onDeath(Child &child) {
  if (!child.isAlive)
    return;
  onSocket(child); // its last words, and then its death
  int status = 0;
  pid_t got;
  while ((got = waitpid(child.pid, &status, 0)) < 0 && errno == EINTR)
    ;
  if (got != child.pid)
    status = unknownWaitStatus; // someone else in this process has asked for it before
  child.isAlive = false;
  isForced = isForced || status == unknownWaitStatus || WIFSIGNALED(status);
  for (std::unique_ptr<OutputRelay> *relay : {&child.output, &child.error})
    if (*relay)
      (*relay)->moveRest();
  sink({.kind = Kind::ended, .rank = rankOf(child), .number = status, .text = child.history.text()});
}

void LocalRanks::deliver(const LaunchMessage &gathered) {
  for (Child &child : children) {
    if (!child.socket)
      continue;
    child.socket->queue({.kind = FrameKind::gather, .number = uint64_t(gathered.number), .payload = gathered.text});
    if (!child.socket->flush())
      child.socket.reset();
  }
}

/// Ranks leave at once.
void LocalRanks::stop(const LaunchMessage &command) {
  bool isAtOnce = command.number != 0;
  if (isStopping && !isAtOnce)
    return;
  isStopping = isForced = true;
  board->abandon();
  if (isAtOnce)
    return killAll();
  killDeadline = Clock::now() + options.stopTime;
  signalAll(SIGTERM, command.rank);
}

void LocalRanks::killAll() {
  isForced = isKillSent = true;
  killDeadline = Clock::now() + killTime;
  signalAll(SIGKILL);
}

void LocalRanks::apply(const LaunchMessage &command) {
  if (!board)
    return; // not even begun
  switch (command.kind) {
  case Kind::gathered:
    return deliver(command);
  case Kind::pause:
    return sink({.kind = Kind::entered, .number = int64_t(board->hold())});
  case Kind::saveAt:
    return board->saveAt(uint64_t(command.number));
  case Kind::save:
    isTerminationTold = true;
    board->requestShutdown();
    signalAll(SIGTERM);
    return sink({.kind = Kind::entered, .number = int64_t(board->hold())});
  case Kind::release:
    return board->release(uint64_t(command.number));
  case Kind::whole:
    return board->setWholeSnapshot(command.number);
  case Kind::stop:
    return stop(command);
  default:
    return;
  }
}

void LocalRanks::tick() {
  if (!isTerminationTold && board->isShutdownRequested()) {
    isTerminationTold = true;
    sink({.kind = Kind::asked, .number = SIGTERM}); // it came to a rank, not to the launcher
  }
  for (Child &child : children)
    if (child.isAlive) {
      ++child.looks;
      child.waits += board->line(&child - children.data()).waitingFor.load(std::memory_order_relaxed) != 0;
    }
  if (board->takeSaveRequest())
    sink({.kind = Kind::asked, .number = SIGUSR1});
  for (Child &child : children)
    if (int signal = board->brokenBy(&child - children.data()); signal && !child.isBreakTold) {
      child.isBreakTold = true;
      sink({.kind = Kind::report, .rank = rankOf(child), .number = 256 + 1, .text = describeBreak(signal)});
    }
  if (Clock::now() >= killDeadline) {
    if (isKillSent)
      giveUp();
    else
      killAll();
  }
  if (Clock::now() >= cleanTime) {
    cleanTime = Deadline::max();
    if (std::exchange(isForced, false))
      removeOrphanSegments(started);
  }
  if (!isAnyAlive() && !std::exchange(isFinished, true))
    finish();
}

/// Only a process that hangs inside the kernel survives SIGKILL for seconds.
void LocalRanks::giveUp() {
  for (Child &child : children)
    if (std::exchange(child.isAlive, false)) {
      say(fmt::format("pid {} does not end although it was killed; it hangs in the kernel", child.pid));
      sink({.kind = Kind::ended, .rank = rankOf(child), .number = SIGKILL});
    }
}

void LocalRanks::finish() {
  for (Child &child : children) { // what they wrote just before they ended
    for (std::unique_ptr<OutputRelay> *relay : {&child.output, &child.error})
      if (*relay)
        (*relay)->moveRest();
    child.output.reset();
    child.error.reset();
  }
  sink({.kind = Kind::gone, .text = packProgress(progress())});
}

void LocalRanks::say(const std::string &text) { error.add(fmt::format("{}: {}\n", options.tool, printable(text))); }

void LocalRanks::tell(LaunchEvent event) {
  if (!event.text.empty())
    say(event.text);
  event.host = placement.hostName, event.job = placement.jobId;
  if (options.describeEvent)
    output.add(options.describeEvent(event));
}

void LocalRanks::drainOutput(bool isPatient) {
  if (isForced) // not sooner: it waits, and ranks that start anew do not
    removeOrphanSegments(started);
  restoreSignals(); // Ctrl-C ends the wait, and with it the launcher
  const std::chrono::milliseconds time = isPatient ? options.timeout : std::chrono::milliseconds(1000);
  const size_t lost = output.drain(time) + error.drain(time);
  if (lost > 0) {
    say(fmt::format("nobody read the last {} bytes that ranks had printed; they are lost", lost));
    error.drain(std::chrono::milliseconds(0));
  }
}

/// T (stopped by a signal) or t (by a debugger).
static bool isSuspended(pid_t pid) {
  char path[64], text[512];
  std::snprintf(path, sizeof path, "/proc/%d/stat", int(pid));
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return false;
  ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  text[std::max<ssize_t>(got, 0)] = '\0';
  const char *name = std::strrchr(text, ')'); // the name may hold anything
  return name && name[1] == ' ' && (name[2] == 'T' || name[2] == 't');
}

/// Whether rank 0, which writes to the launcher's own stdout, would wait there for its reader.
static bool isNobodyReading() {
  pollfd entry = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&entry, 1, 0) == 0;
}

std::vector<RankProgress> LocalRanks::progress() {
  std::vector<RankProgress> all;
  for (Child &child : children) {
    const ProgressLine &line = board->line(&child - children.data());
    constexpr auto relaxed = std::memory_order_relaxed;
    RankProgress now;
    now.rank = rankOf(child);
    now.pid = child.pid;
    now.step = line.step.load(relaxed), now.pulses = line.pulses.load(relaxed);
    now.task = line.task.load(relaxed), now.microbatch = line.microbatch.load(relaxed);
    now.phase = line.phase.load(relaxed), now.waitingFor = line.waitingFor.load(relaxed);
    now.looks = child.looks, now.waits = child.waits;
    now.hindrance = child.last.hindrance;
    // The system is asked only about ranks that do not move.
    if (now == child.last && child.isAlive)
      now.hindrance = isSuspended(child.pid)               ? Hindrance::suspended
                      : now.rank == 0 && isNobodyReading() ? Hindrance::output
                                                           : Hindrance::none;
    else if (child.isAlive)
      now.hindrance = Hindrance::none;
    child.last = now;
    all.push_back(now);
  }
  return all;
}

} // namespace dg
