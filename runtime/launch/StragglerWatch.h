// SPDX-License-Identifier: Apache-2.0
// Finds the rank that holds up the others: it is not waiting for anyone, does nothing new, and others wait for it.
#pragma once

#include "runtime/launch/ranks/RankState.h"

#include <optional>
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

private:
  std::vector<double> stepSeconds; ///< the last ones, a ring
  size_t next = 0;
};

} // namespace dg
