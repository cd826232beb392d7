// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/StragglerWatch.h"

#include "runtime/executor/ProgressBoard.h"

#include <algorithm>

namespace dg {

static constexpr size_t keptSteps = 63;
static constexpr double medianSteps = 3, leastSeconds = 1;
/// Of a slow rank: how long it is watched, which part of that it waits at most, and which part the others wait at
/// least.
static constexpr std::chrono::seconds windowTime{5};
static constexpr double slowWaits = 0.15, othersWait = 0.5;

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
  const RankProgress &before = rank.progress;
  if (now.step != before.step || now.task != before.task || now.microbatch != before.microbatch ||
      now.phase != before.phase)
    rank.waitsSince = {};
  rank.seenAt = time;
  rank.progress = now;
  if (!rank.isWaiting())
    rank.waitsSince = {};
  else if (rank.waitsSince == RankState::Time())
    rank.waitsSince = time;
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
    if (rank.isAlive && !rank.hasReported && rank.parts.empty() && isInStep(rank) &&
        rank.stuckFor().count() >= seconds && (worst < 0 || rank.stuckFor() > ranks[size_t(worst)].stuckFor()))
      worst = int64_t(i);
  }
  return worst;
}

std::optional<StragglerWatch::Slow> StragglerWatch::findSlow(const std::vector<RankState> &ranks, RankState::Time now) {
  if (now - windowBeganAt < windowTime)
    return std::nullopt;
  const bool isFirst = windowBegin.size() != ranks.size();
  windowBegin.resize(ranks.size());
  windowBeganAt = now;
  std::vector<double> shares;
  Slow slow;
  bool isTraining = !isFirst && ranks.size() > 1;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const RankProgress &last = ranks[i].progress;
    const double looks = last.looks - windowBegin[i].looks, waits = last.waits - windowBegin[i].waits;
    windowBegin[i] = {last.looks, last.waits};
    isTraining = isTraining && ranks[i].isAlive && looks > 0 && RankPhase(last.phase) == RankPhase::training;
    shares.push_back(looks > 0 ? waits / looks : 0);
    if (shares[i] < shares[size_t(std::max<int64_t>(slow.rank, 0))] || slow.rank < 0)
      slow.rank = int64_t(i);
  }
  slow.waitedShare = shares[size_t(slow.rank)];
  shares.erase(shares.begin() + slow.rank);
  std::nth_element(shares.begin(), shares.begin() + ptrdiff_t(shares.size() / 2), shares.end());
  slow.othersShare = shares.empty() ? 0 : shares[shares.size() / 2];
  const bool isSlow = isTraining && slow.waitedShare <= slowWaits && slow.othersShare >= othersWait;
  const int64_t before = std::exchange(slowBefore, isSlow ? slow.rank : -1);
  if (!isSlow)
    slowTold = -1;
  if (!isSlow || before != slow.rank || slowTold == slow.rank)
    return std::nullopt;
  slowTold = slow.rank;
  return slow;
}

int64_t StragglerWatch::findLongestWait(const std::vector<RankState> &ranks) {
  int64_t longest = -1;
  for (size_t i = 0; i < ranks.size(); ++i)
    if (ranks[i].isAlive && !ranks[i].hasReported && ranks[i].waitsSince != RankState::Time() &&
        (longest < 0 || ranks[i].waitsSince < ranks[size_t(longest)].waitsSince))
      longest = int64_t(i);
  return longest;
}

std::optional<std::pair<int64_t, int64_t>> StragglerWatch::findDeadLink(const std::vector<RankState> &ranks) {
  std::optional<std::pair<int64_t, int64_t>> found;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const int64_t other = ranks[i].progress.waitingFor - 1;
    if (!ranks[i].isAlive || other < 0 || size_t(other) >= ranks.size())
      continue;
    const RankState &peer = ranks[size_t(other)];
    if (!peer.isAlive || peer.host == ranks[i].host || !(peer.isWaiting() || peer.hasReported))
      continue;
    found = {int64_t(i), other};
    if (peer.progress.waitingFor - 1 == int64_t(i))
      break; // each for the other: it is this link
  }
  return found;
}

} // namespace dg
