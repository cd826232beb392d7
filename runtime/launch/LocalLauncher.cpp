// SPDX-License-Identifier: Apache-2.0
// The launcher's side: fork, then one poll loop over signals, deaths, control sockets and output until no rank is left.
#include "runtime/launch/LocalLauncher.h"

#include "runtime/launch/ControlSocket.h"
#include "runtime/launch/FailureReport.h"
#include "runtime/launch/OrphanSegments.h"
#include "runtime/launch/OutputRelay.h"
#include "runtime/launch/RankProcess.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace dg {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int exitStoppedResumable = 75;
constexpr int exitTerminated = 128 + SIGTERM;
/// How long a report that only blames others may wait for a better one.
constexpr milliseconds explanationTime{1000};
/// How long the kernel may take to remove a process after SIGKILL.
constexpr milliseconds killTime{5000};

/// One rank as the launcher sees it.
struct Child {
  pid_t pid = 0;
  int pidDescriptor = -1;
  bool isAlive = false;
  std::unique_ptr<ControlSocket> socket; ///< null once the rank has closed it
  std::unique_ptr<OutputRelay> output, error;
  std::deque<std::string> parts; ///< of exchanges that wait for other ranks
  uint64_t numExchanges = 0;     ///< that have been answered
  bool hasReported = false;
  int exitCode = 0; ///< when ended by itself
};

class Launch {
public:
  explicit Launch(const LaunchOptions &options) : options(options), children(size_t(options.numRanks)) {}
  ~Launch();

  Status prepare();
  Status fork(const RankMain &rankMain);
  int watch();

private:
  enum class Mode { running, saving, stopping };

  bool isAnyAlive() const;
  void pollOnce();
  milliseconds untilNextDeadline() const;
  void onSignals();
  void onSocket(Child &child, int64_t rank);
  void onDeath(Child &child, int64_t rank);
  void answerExchanges();
  void findDeserter();
  void signalAll(int number, int64_t except = -1);
  void requestShutdown();
  void stop();
  void checkDeadlines();
  void giveUp();
  int finish();

  const LaunchOptions &options;
  std::vector<Child> children;
  std::unique_ptr<SharedBoard> board;
  sigset_t oldMask = {};
  int signals = -1;
  timespec started = {};

  Mode mode = Mode::running;
  FailureReport failure;
  int interrupt = 0;     ///< SIGINT or SIGHUP, when that ended the launch
  bool isForced = false; ///< someone was killed by a signal
  bool isKillSent = false;
  Deadline deadline = Deadline::max(); ///< of the mode
  Deadline explanationDeadline = Deadline::max();
};

Status systemError(const char *what) {
  return Status::error(ErrorKind::runFailed, "cannot {}: {}", what, std::strerror(errno));
}

Launch::~Launch() {
  signalAll(SIGKILL);
  for (Child &child : children) {
    if (child.isAlive)
      waitpid(child.pid, nullptr, 0);
    if (child.pidDescriptor >= 0)
      close(child.pidDescriptor);
  }
  if (signals >= 0) {
    close(signals);
    timespec now = {};
    sigset_t handled;
    sigemptyset(&handled);
    for (int number : {SIGINT, SIGTERM, SIGHUP})
      sigaddset(&handled, number);
    while (sigtimedwait(&handled, nullptr, &now) > 0) // it would end the launcher a moment before it returns
      ;
    sigprocmask(SIG_SETMASK, &oldMask, nullptr);
  }
}

Status Launch::prepare() {
  if (options.numRanks < 1)
    return Status::error(ErrorKind::usage, "found {} ranks, expected at least 1; give -n a positive number",
                         options.numRanks);
  clock_gettime(CLOCK_REALTIME, &started);
  Result<std::unique_ptr<SharedBoard>> made = SharedBoard::make(options.numRanks);
  if (!made)
    return made.status();
  board = std::move(*made);
  sigset_t handled;
  sigemptyset(&handled);
  for (int number : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&handled, number);
  sigprocmask(SIG_BLOCK, &handled, &oldMask);
  signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  return signals >= 0 ? Status::ok() : systemError("watch for signals");
}

Status Launch::fork(const RankMain &rankMain) {
  std::fflush(nullptr); // or the children would write it again
  pid_t self = getpid();
  std::vector<int> foreign = {signals};
  for (int64_t rank = 0; rank < options.numRanks; ++rank) {
    Child &child = children[size_t(rank)];
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
      return systemError("make a socket pair");
    child.socket = std::make_unique<ControlSocket>(sockets[0]);
    foreign.push_back(sockets[0]);
    // Rank 0 keeps the tool's stdout, so that --json stays clean, and a terminal, so that progress bars work.
    auto makeRelay = [&](int target, std::unique_ptr<OutputRelay> &relay) {
      int pipes[2];
      if (pipe2(pipes, O_CLOEXEC) != 0)
        return -1;
      relay = std::make_unique<OutputRelay>(pipes[0], target, fmt::format("[{}] ", rank));
      foreign.push_back(pipes[0]);
      return pipes[1];
    };
    bool keepsOutput = rank == 0;
    bool keepsError = rank == 0 && (options.numRanks == 1 || isatty(STDERR_FILENO));
    RankProcess process;
    process.rank = rank;
    process.launcher = self;
    process.socket = sockets[1];
    if (!keepsOutput)
      process.output = makeRelay(STDOUT_FILENO, child.output);
    if (!keepsError)
      process.error = makeRelay(STDERR_FILENO, child.error);
    process.signalMask = oldMask;
    process.board = board.get();
    process.foreign = foreign;
    child.pid = ::fork();
    if (child.pid == 0)
      runRankProcess(process, rankMain);
    int forkError = errno;
    for (int descriptor : {sockets[1], process.output, process.error})
      if (descriptor >= 0)
        close(descriptor);
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

bool Launch::isAnyAlive() const {
  for (const Child &child : children)
    if (child.isAlive)
      return true;
  return false;
}

void Launch::signalAll(int number, int64_t except) {
  for (size_t rank = 0; rank < children.size(); ++rank)
    if (children[rank].isAlive && int64_t(rank) != except)
      kill(children[rank].pid, number); // the process is not reaped yet, so the number is still its own
}

/// The polite end: ranks save and leave.
void Launch::requestShutdown() {
  if (mode != Mode::running)
    return;
  mode = Mode::saving;
  deadline = Clock::now() + options.saveTime;
  board->requestShutdown();
  signalAll(SIGTERM);
}

/// The other end: ranks leave at once.
void Launch::stop() {
  if (mode == Mode::stopping)
    return;
  mode = Mode::stopping;
  deadline = Clock::now() + options.stopTime;
  isForced = true;
  board->abandon();
  // A rank that has just told its failure is on its way out and may have more to print.
  bool isLeaving = failure.hasAny() && failure.event().kind == FailureEvent::Kind::own;
  signalAll(SIGTERM, isLeaving ? failure.event().rank : -1);
}

void Launch::onSignals() {
  signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == ssize_t(sizeof info)) {
    if (info.ssi_signo == SIGTERM) {
      requestShutdown();
    } else if (mode != Mode::stopping) {
      interrupt = int(info.ssi_signo);
      stop();
    }
  }
}

void Launch::onSocket(Child &child, int64_t rank) {
  bool isConnected = child.socket->flush();
  isConnected = child.socket->fill() && isConnected;
  while (std::optional<Frame> frame = child.socket->take()) {
    if (frame->kind == FrameKind::gather) {
      child.parts.push_back(std::move(frame->payload));
    } else if (mode != Mode::stopping) {
      child.hasReported = true;
      bool isOwn = frame->origin == FailureOrigin::own;
      failure.add({isOwn ? FailureEvent::Kind::own : FailureEvent::Kind::peer, rank, int(frame->number),
                   std::move(frame->payload)});
    }
  }
  if (!isConnected)
    child.socket.reset();
}

/// An exchange is complete when every rank has sent its part.
void Launch::answerExchanges() {
  while (true) {
    std::vector<std::string> parts;
    for (Child &child : children)
      if (!child.parts.empty())
        parts.push_back(child.parts.front());
    if (parts.size() != children.size())
      return;
    std::string all = packParts(parts);
    for (Child &child : children) {
      child.parts.pop_front();
      uint64_t number = child.numExchanges++;
      if (!child.socket)
        continue;
      child.socket->queue({.kind = FrameKind::gather, .number = number, .payload = all});
      if (!child.socket->flush())
        child.socket.reset();
    }
  }
}

void Launch::onDeath(Child &child, int64_t rank) {
  if (child.socket)
    onSocket(child, rank); // its last words, and then its death
  int status = 0;
  if (waitpid(child.pid, &status, 0) != child.pid)
    return;
  child.isAlive = false;
  if (mode == Mode::stopping)
    return;
  if (WIFSIGNALED(status)) {
    isForced = true;
    child.exitCode = 128 + WTERMSIG(status);
    if (mode == Mode::saving && WTERMSIG(status) == SIGTERM)
      return; // it came before the rank had its handler
    failure.add({FailureEvent::Kind::signal, rank, WTERMSIG(status), ""});
    return;
  }
  child.exitCode = WEXITSTATUS(status);
  if (child.exitCode == exitStoppedResumable)
    requestShutdown(); // someone sent SIGTERM to the rank itself
  else if (mode == Mode::saving && child.exitCode == exitTerminated)
    return;
  else if (child.exitCode != 0 && !child.hasReported)
    failure.add({FailureEvent::Kind::exitCode, rank, child.exitCode, ""});
}

/// A rank that ended well while others wait for it in an exchange, which can never end.
void Launch::findDeserter() {
  if (mode == Mode::stopping || failure.hasAny())
    return;
  for (size_t waiting = 0; waiting < children.size(); ++waiting)
    for (size_t rank = 0; rank < children.size(); ++rank)
      if (!children[waiting].parts.empty() && children[waiting].isAlive && !children[rank].isAlive &&
          children[rank].parts.empty())
        return failure.add({FailureEvent::Kind::left, int64_t(rank), 0, fmt::format("rank {}", waiting)});
}

milliseconds Launch::untilNextDeadline() const {
  Deadline next = std::min(deadline, explanationDeadline);
  if (next == Deadline::max())
    return milliseconds(-1);
  return std::max(std::chrono::ceil<milliseconds>(next - Clock::now()), milliseconds(0));
}

void Launch::pollOnce() {
  std::vector<pollfd> entries = {{signals, POLLIN, 0}};
  std::vector<std::pair<Child *, int>> owners = {{nullptr, 0}}; // child and what: 0 socket, 1 output, 2 error, 3 death
  auto add = [&](Child &child, int what, int descriptor, short events) {
    entries.push_back({descriptor, events, 0});
    owners.push_back({&child, what});
  };
  for (Child &child : children) {
    if (child.socket)
      add(child, 0, child.socket->descriptor(), short(POLLIN | (child.socket->hasOutput() ? POLLOUT : 0)));
    if (child.output)
      add(child, 1, child.output->descriptor(), POLLIN);
    if (child.error)
      add(child, 2, child.error->descriptor(), POLLIN);
    if (child.isAlive)
      add(child, 3, child.pidDescriptor, POLLIN);
  }
  if (poll(entries.data(), entries.size(), int(untilNextDeadline().count())) < 0)
    return;
  if (entries[0].revents)
    onSignals();
  for (size_t i = 1; i < entries.size(); ++i) {
    auto [child, what] = owners[i];
    if (!entries[i].revents)
      continue;
    int64_t rank = child - children.data();
    if (what == 0 && child->socket)
      onSocket(*child, rank);
    else if (what == 1 && !child->output->move())
      child->output.reset();
    else if (what == 2 && !child->error->move())
      child->error.reset();
    else if (what == 3)
      onDeath(*child, rank);
  }
  answerExchanges();
  findDeserter();
}

void Launch::checkDeadlines() {
  if (mode != Mode::stopping && failure.hasAny()) {
    if (explanationDeadline == Deadline::max())
      explanationDeadline = Clock::now() + explanationTime;
    if (failure.isCertain() || Clock::now() >= explanationDeadline) {
      explanationDeadline = Deadline::max();
      stop();
    }
  }
  if (Clock::now() < deadline)
    return;
  if (isKillSent)
    return giveUp();
  isForced = isKillSent = true;
  mode = Mode::stopping;
  deadline = Clock::now() + killTime;
  signalAll(SIGKILL);
}

/// Only a process that hangs inside the kernel survives SIGKILL for seconds.
void Launch::giveUp() {
  for (Child &child : children)
    if (std::exchange(child.isAlive, false))
      fmt::print(stderr, "{}: pid {} does not end although it was killed; it hangs in the kernel\n", options.tool,
                 child.pid);
}

int Launch::watch() {
  while (isAnyAlive()) {
    pollOnce();
    checkDeadlines();
  }
  for (Child &child : children) { // what they wrote just before they ended
    if (child.output)
      child.output->move();
    if (child.error)
      child.error->move();
    child.output.reset();
    child.error.reset();
  }
  return finish();
}

int Launch::finish() {
  if (isForced)
    removeOrphanSegments(started);
  if (failure.hasAny() && !interrupt) {
    const FailureEvent &event = failure.event();
    int64_t pid = children[size_t(event.rank)].pid;
    RankFailure told = {event.rank, pid, board->line(event.rank).step.load(),
                        describeFailure(event, pid, *board, options)};
    fmt::print(stderr, "{}: {}\n", options.tool, told.text);
    if (options.onFailure)
      options.onFailure(told);
    return failure.exitCode();
  }
  const char *others = options.numRanks > 1 ? "all ranks were" : "the rank was";
  if (interrupt) {
    fmt::print(stderr, "{}: interrupted; {} stopped\n", options.tool, others);
    return 128 + interrupt;
  }
  if (mode == Mode::running)
    return 0;
  if (isKillSent) {
    fmt::print(stderr, "{}: SIGTERM came, and not every rank had left {} s later; {} killed\n", options.tool,
               options.saveTime.count() / 1000, others);
    return exitTerminated;
  }
  int code = 0; // finished after all, unless someone says otherwise
  for (const Child &child : children)
    if (child.exitCode == exitTerminated || (child.exitCode == exitStoppedResumable && code == 0))
      code = child.exitCode;
  return code;
}

} // namespace

int launchLocal(const LaunchOptions &options, const RankMain &rankMain) {
  Launch launch(options);
  Status status = launch.prepare();
  if (status.isOk())
    status = launch.fork(rankMain);
  if (!status.isOk()) {
    fmt::print(stderr, "{}: {}\n", options.tool, status.message());
    return status.exitCode();
  }
  return launch.watch();
}

} // namespace dg
