// SPDX-License-Identifier: Apache-2.0
// The sum of a group's buffers in the bracketing that the plan names, for whoever has all of them at hand. Routes that
// see only partial sums (ring, halving, two-level) give the same bits.
#pragma once

#include "runtime/plan/Bracketing.h"
#include "runtime/transport/collectives/SumInOrder.h"

#include <vector>

namespace dg {

class BracketedSum {
public:
  /// Of `groupSize` buffers with `total` elements each. Null (see isPossible) for a type without a sum. Owns its
  /// scratch.
  BracketedSum(plan::DType type, plan::Bracketing bracketing, size_t groupSize, size_t total);

  bool isPossible() const { return sum != nullptr; }
  /// Elements [begin, begin + count) of the whole: the pointers stand at `begin`. An output may be one of the inputs;
  /// other overlaps are not allowed.
  void add(void *const *outputs, size_t numOutputs, const void *const *inputs, size_t begin, size_t count);

private:
  void addTwoLevel(void *const *outputs, size_t numOutputs, size_t count);
  void addRound(void *const *outputs, size_t numOutputs, size_t first, size_t count);
  void addHalving(void *const *outputs, size_t numOutputs, size_t count);
  void *scratchAt(size_t slot) { return &scratch[slot * tileElements * elementBytes]; }

  static constexpr size_t tileElements = 1024;
  const SumInOrder sum;
  const plan::Bracketing bracketing;
  const size_t groupSize, total, elementBytes;
  const bool isExact;        ///< partial sums have the precision of the elements
  std::vector<char> scratch; ///< tiles of partial sums
  std::vector<const void *> current;
  std::vector<void *> targets;
};

} // namespace dg
