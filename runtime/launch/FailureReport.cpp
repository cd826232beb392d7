// SPDX-License-Identifier: Apache-2.0
// The words of a failed launch.
#include "runtime/launch/FailureReport.h"

#include <csignal>
#include <cstring>
#include <unistd.h>

namespace dg {
namespace {

const char *describePhase(uint32_t phase) {
  switch (RankPhase(phase)) {
  case RankPhase::starting:
    return "starting";
  case RankPhase::connecting:
    return "connecting";
  case RankPhase::loading:
    return "loading";
  case RankPhase::training:
    return "training";
  case RankPhase::evaluating:
    return "evaluating";
  case RankPhase::checkpointing:
    return "writing a checkpoint";
  case RankPhase::done:
    return "finishing";
  }
  return "in an unknown phase";
}

std::string hostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
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
  bool isChosenByRank = cause->kind != FailureEvent::Kind::signal && cause->kind != FailureEvent::Kind::left;
  return isChosenByRank && (cause->number == 2 || cause->number == 65) ? cause->number : 1;
}

std::string describeProgress(ProgressLine &line, const LaunchOptions &options) {
  uint32_t phase = line.phase.load(std::memory_order_relaxed);
  std::string text = describePhase(phase);
  if (uint64_t step = line.step.load(std::memory_order_relaxed))
    text += fmt::format(", step {}", step);
  // Between steps the line still names the last task, which is over.
  bool isInStep = RankPhase(phase) == RankPhase::training || RankPhase(phase) == RankPhase::evaluating;
  if (uint32_t task = line.task.load(std::memory_order_relaxed); task && isInStep)
    text +=
        fmt::format(", in task {}", options.describeTask ? options.describeTask(task - 1) : std::to_string(task - 1));
  if (int32_t peer = line.waitingFor.load(std::memory_order_relaxed))
    text += fmt::format(", waiting for rank {}", peer - 1);
  return text;
}

std::string describeFailure(const FailureEvent &event, int64_t pid, SharedBoard &board, const LaunchOptions &options) {
  std::string text = fmt::format("rank {} (host {}, pid {}) ", event.rank, hostName(), pid);
  std::string doing = describeProgress(board.line(event.rank), options);
  std::string others = options.numRanks > 1 ? "; the other ranks were stopped" : "";
  switch (event.kind) {
  case FailureEvent::Kind::signal:
    text += fmt::format("was killed by {} while {}{}", describeSignal(event.number), doing, others);
    if (event.number == SIGKILL)
      text += "; if no one sent it, the host ran out of memory: see dmesg";
    return text;
  case FailureEvent::Kind::exitCode:
    return text + fmt::format("ended with exit code {} while {}{}", event.number, doing, others);
  case FailureEvent::Kind::left:
    return text + fmt::format("ended while {} waited for it{}", event.text, others);
  case FailureEvent::Kind::own:
    return text + fmt::format("failed while {}: {}{}", doing, event.text, others);
  case FailureEvent::Kind::peer:
    break;
  }
  text += fmt::format("gave up while {}: {}{}", doing, event.text, others);
  // Nobody said what is wrong, so what the others did is all there is to go by.
  for (int64_t rank = 0; rank < std::min<int64_t>(board.numRanks(), 16); ++rank)
    if (rank != event.rank)
      text += fmt::format("\n  rank {} was {}", rank, describeProgress(board.line(rank), options));
  return text;
}

} // namespace dg
