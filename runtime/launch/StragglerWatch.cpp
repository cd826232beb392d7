// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/StragglerWatch.h"

#include "runtime/executor/ProgressBoard.h"

#include <algorithm>

namespace dg {

static constexpr size_t keptSteps = 63;
static constexpr double medianSteps = 3, leastSeconds = 1;

void StragglerWatch::note(RankState &rank, const RankProgress &now, RankState::Time time) {
  bool isFirst = rank.seenAt == RankState::Time();
  if (now.step > rank.progress.step && !isFirst) {
    double seconds = std::chrono::duration<double>(time - rank.steppedAt).count();
    stepSeconds.resize(std::max(stepSeconds.size(), std::min(next + 1, keptSteps)));
    stepSeconds[next++ % keptSteps] = seconds / double(now.step - rank.progress.step);
  }
  // Before the first step the clock starts anew with every look: set-up is no step.
  if (now.step != rank.progress.step || now.step == 0)
    rank.steppedAt = time;
  if (isFirst || !(now == rank.progress))
    rank.changedAt = time;
  rank.seenAt = time;
  rank.progress = now;
}

std::optional<double> StragglerWatch::medianStepSeconds() const {
  if (stepSeconds.empty())
    return std::nullopt;
  std::vector<double> sorted = stepSeconds;
  std::nth_element(sorted.begin(), sorted.begin() + ptrdiff_t(sorted.size() / 2), sorted.end());
  return sorted[sorted.size() / 2];
}

int64_t StragglerWatch::find(const std::vector<RankState> &ranks) const {
  std::optional<double> median = medianStepSeconds();
  if (!median)
    return -1;
  double seconds = std::max(medianSteps * *median, leastSeconds);
  bool isAnyWaiting = std::any_of(ranks.begin(), ranks.end(), [&](const RankState &rank) {
    // One that waits counts up its pulses, so that its progress changes.
    return rank.isAlive &&
           (!rank.parts.empty() || (rank.progress.waitingFor != 0 && rank.stuckFor().count() < seconds));
  });
  return isAnyWaiting ? findStuck(ranks, seconds) : -1;
}

int64_t StragglerWatch::findStuck(const std::vector<RankState> &ranks, double seconds) {
  auto isInStep = [](const RankState &rank) {
    return RankPhase(rank.progress.phase) == RankPhase::training ||
           RankPhase(rank.progress.phase) == RankPhase::evaluating;
  };
  int64_t worst = -1;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const RankState &rank = ranks[i];
    if (rank.isAlive && rank.parts.empty() && isInStep(rank) && rank.stuckFor().count() >= seconds &&
        (worst < 0 || rank.stuckFor() > ranks[size_t(worst)].stuckFor()))
      worst = int64_t(i);
  }
  return worst;
}

} // namespace dg
