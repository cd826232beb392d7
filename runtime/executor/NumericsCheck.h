// SPDX-License-Identifier: Apache-2.0
// Looks at everything that a task has written, right after it ran, and stops at the first NaN or infinity (dgrun
// --check-numerics). Each task is then a segment of its own, so that the first is the first.
#pragma once

#include "runtime/device/Device.h"

namespace dg {

/// Calling thread only.
class NumericsCheck {
public:
  /// The references outlive it.
  NumericsCheck(const plan::Plan &plan, const Device &device) : plan(plan), device(device) {}

  /// Whether what run number `index` of the segment, which is complete, has written is finite; failure() says what is
  /// not.
  bool isSound(const Segment &segment, uint32_t index, const StepContext &step);
  const Status &failure() const { return found; }

private:
  /// "nan at element 7 of 320", or nothing when all are finite.
  std::string findBad(const plan::Value &value, uint32_t index) const;

  const plan::Plan &plan;
  const Device &device;
  Status found = Status::ok();
};

} // namespace dg
