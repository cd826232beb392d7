// SPDX-License-Identifier: Apache-2.0
// The words of a failed launch.
#include "runtime/launch/FailureReport.h"

#include "runtime/executor/ProgressBoard.h"

#include <csignal>
#include <cstring>
#include <iterator>

namespace dg {
namespace {

/// Ranks of which the block tells what they were doing.
constexpr int64_t describedRanks = 16;

/// In the order of RankPhase.
const char *describePhase(uint32_t phase) {
  constexpr const char *words[] = {"starting",   "connecting",           "loading",   "training",
                                   "evaluating", "writing a checkpoint", "inferring", "finishing"};
  return phase < std::size(words) ? words[phase] : "in an unknown phase";
}

std::string describeSignal(int number) {
  const char *name = sigabbrev_np(number);
  return fmt::format("signal {} (SIG{})", number, name ? name : "?");
}

} // namespace

void FailureReport::add(FailureEvent event) {
  if (!cause || (!isCertain() && event.kind != FailureEvent::Kind::peer))
    cause = std::move(event);
}

int FailureReport::exitCode() const {
  switch (cause->kind) {
  case FailureEvent::Kind::signal:
    for (int defect : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGSYS})
      if (cause->number == defect)
        return exitCodeOf(ErrorKind::defect);
    return exitCodeOf(ErrorKind::lost);
  case FailureEvent::Kind::own:
  case FailureEvent::Kind::exitCode:
    return exitCodeOf(kindOfExitCode(cause->number));
  case FailureEvent::Kind::peer:
    if (ErrorKind kind = kindOfExitCode(cause->number); kind != ErrorKind::runFailed)
      return exitCodeOf(kind);
    break;
  default:
    break;
  }
  return exitCodeOf(ErrorKind::lost);
}

bool FailureReport::isPassing() const {
  const bool isInWords = cause->kind == FailureEvent::Kind::own || cause->kind == FailureEvent::Kind::peer;
  return !isInWords || exitCode() == exitCodeOf(ErrorKind::lost);
}

std::string describeEarlyStop(const LaunchOptions &options, const char *signal) {
  return fmt::format("{} came before the first step; {}", signal,
                     options.isResumable ? "the checkpoint is as it was: the same command continues from it"
                                         : "nothing was begun, and nothing was saved");
}

std::string describeSilence(std::chrono::nanoseconds limit) {
  return fmt::format("has been silent for {:.0f} s: the link to it is down or loses what is sent, or the host hangs",
                     std::chrono::duration<double>(limit).count());
}

std::string describeSilence(std::chrono::nanoseconds silence, std::chrono::nanoseconds limit) {
  return fmt::format(" has been silent for {:.0f} s; the run ends after {:g} s of silence (--timeout)",
                     std::chrono::duration<double>(silence).count(), std::chrono::duration<double>(limit).count());
}

std::string describeRank(const RankState &rank) {
  return fmt::format("rank {} (host {}, pid {})", rank.progress.rank, rank.host, rank.progress.pid);
}

const char *describeHindrance(const RankState &rank) {
  switch (rank.progress.hindrance) {
  case Hindrance::suspended:
    return ": it is suspended (SIGSTOP); kill -CONT lets it go on";
  case Hindrance::output:
    return ": it waits for someone to read the standard output of the run, which is full";
  case Hindrance::none:
    break;
  }
  return "";
}

std::string describeProgress(const RankState &rank, const LaunchOptions &options) {
  const RankProgress &line = rank.progress;
  std::string text = describePhase(line.phase);
  if (line.step)
    text += fmt::format(", step {}", line.step);
  // Between steps the line still names the last task, which is over.
  bool isInStep = RankPhase(line.phase) == RankPhase::training || RankPhase(line.phase) == RankPhase::evaluating;
  if (line.task && isInStep)
    text += fmt::format(", in task {}",
                        options.describeTask ? options.describeTask(line.task - 1) : std::to_string(line.task - 1));
  if (line.waitingFor)
    text += fmt::format(", waiting for rank {}", int64_t(line.waitingFor) - 1);
  else if (!rank.parts.empty())
    text += ", waiting to meet the others";
  return text;
}

std::string describeCause(const FailureEvent &event, const std::vector<RankState> &ranks,
                          const LaunchOptions &options) {
  const RankState &rank = ranks[size_t(event.rank)];
  std::string text = describeRank(rank), doing = describeProgress(rank, options);
  switch (event.kind) {
  case FailureEvent::Kind::signal:
    text += fmt::format(" was killed by {} while {}", describeSignal(event.number), doing);
    if (event.number == SIGKILL)
      text += "; if no one sent it, the host ran out of memory: see dmesg";
    return text;
  case FailureEvent::Kind::exitCode:
    if (event.number == unknownWaitStatus)
      return text + fmt::format(" ended while {}; how is not known: something else in {} has waited for it", doing,
                                options.tool);
    return text + fmt::format(" ended with exit code {} while {}", event.number, doing);
  case FailureEvent::Kind::left:
    return text + fmt::format(" ended while {} waited for it", event.text);
  case FailureEvent::Kind::own:
    return text + fmt::format(" failed while {}: {}", doing, event.text);
  case FailureEvent::Kind::lost:
    return event.text;
  case FailureEvent::Kind::stalled:
    return text + fmt::format(" made no progress for {:.0f} s while {}{}; {}", rank.stuckFor().count(), doing,
                              describeHindrance(rank), event.text);
  case FailureEvent::Kind::link:
    return fmt::format("the link between host {} and host {} loses what is sent: {} and {} both run, and wait; {}",
                       rank.host, ranks[size_t(event.number)].host, text, describeRank(ranks[size_t(event.number)]),
                       event.text);
  case FailureEvent::Kind::peer:
    break;
  }
  return text + fmt::format(" gave up while {}: {}", doing, event.text);
}

std::string describeFailure(const FailureEvent &event, const std::vector<RankState> &ranks,
                            const LaunchOptions &options) {
  std::string text = describeCause(event, ranks, options);
  // A lost node is more than the rank in whose name it is told.
  bool isNode = event.kind == FailureEvent::Kind::lost;
  int64_t numTold = 0, numOthers = int64_t(ranks.size()) - (isNode ? 0 : 1);
  for (const RankState &rank : ranks)
    if ((isNode || rank.progress.rank != event.rank) && numTold < describedRanks) {
      text +=
          fmt::format("\n  {}: {} while {}", describeRank(rank),
                      rank.isLost ? "last heard of" : "stopped by " + options.tool, describeProgress(rank, options));
      ++numTold;
    }
  if (numTold < numOthers)
    text += fmt::format("\n  {} more ranks: stopped by {}", numOthers - numTold, options.tool);
  const std::string &lines = ranks[size_t(event.rank)].lastLines;
  if (lines.empty())
    return text;
  text += fmt::format("\n  last lines of rank {}:", event.rank);
  for (size_t at = 0; at < lines.size();) {
    size_t end = lines.find('\n', at);
    text += "\n    " + lines.substr(at, end - at);
    at = end + 1;
  }
  return text;
}

} // namespace dg
