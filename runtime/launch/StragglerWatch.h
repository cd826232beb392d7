// SPDX-License-Identifier: Apache-2.0
// Finds the rank that holds up the others: it is not waiting for anyone, does nothing new, and others wait for it.
#pragma once

#include "runtime/launch/ranks/RankState.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace dg {

class StragglerWatch {
public:
  /// Notes what a rank was doing at that time.
  void note(RankState &rank, const RankProgress &now, RankState::Time time);
  /// Seconds of a step, the median of the last ones of all ranks; nothing before the first.
  std::optional<double> medianStepSeconds() const;
  /// The rank that has been stuck for three median steps, at least a second, while others wait; -1: none.
  int64_t find(const std::vector<RankState> &ranks) const;
  /// The rank that has been stuck longest, of those that are in a step and have been for that long; -1: none.
  static int64_t findStuck(const std::vector<RankState> &ranks, double seconds);
  /// The rank that has waited longest at one place; -1: none waits.
  static int64_t findLongestWait(const std::vector<RankState> &ranks);
  /// Two ranks of different hosts of which the first waits for the second, which waits too: best of all for the first.
  static std::optional<std::pair<int64_t, int64_t>> findDeadLink(const std::vector<RankState> &ranks);

  /// The rank that has worked while most others waited, over two windows of time after each other: it needs `factor`
  /// times as long as they do for its part of a step. Told once as long as it stays the same. To be asked at every
  /// look.
  struct Slow {
    int64_t rank = -1;
    double waitedShare = 0, othersShare = 0;
    double factor() const { return (1 - waitedShare) / std::max(1 - othersShare, 0.01); }
  };
  std::optional<Slow> findSlow(const std::vector<RankState> &ranks, RankState::Time now);

private:
  struct Looks {
    uint32_t looks = 0, waits = 0;
  };
  std::vector<Looks> windowBegin; ///< by rank
  RankState::Time windowBeganAt = {};
  int64_t slowBefore = -1, slowTold = -1; ///< of the window before; of which the user knows
  std::vector<double> stepSeconds;        ///< the last ones, a ring
  size_t next = 0;
};

} // namespace dg
