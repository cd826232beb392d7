// SPDX-License-Identifier: Apache-2.0
// Looks at everything that a task has written, right after it ran, and stops at the first NaN or infinity (dgrun
// --check-numerics). Nodes then run in the plan's order on the calling thread, so that the first is the first.
#pragma once

#include "runtime/executor/Arena.h"
#include "runtime/executor/SegmentRunner.h"

namespace dg {

/// Calling thread only.
class NumericsCheck {
public:
  /// The references outlive it.
  NumericsCheck(const plan::Plan &plan, const Arena &arena) : plan(plan), arena(arena) {}

  /// Runs number `index` of the segment. False when a communication failed, or when failure() says what was found.
  bool run(const Segment &segment, uint32_t index, StepContext &step);
  const Status &failure() const { return found; }

private:
  bool isSound(const Node &node, uint32_t index, const StepContext &step);
  /// "nan at element 7 of 320", or nothing when all are finite.
  std::string findBad(const plan::Value &value, uint32_t index) const;

  const plan::Plan &plan;
  const Arena &arena;
  Status found = Status::ok();
};

} // namespace dg
