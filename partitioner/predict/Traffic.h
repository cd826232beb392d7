// SPDX-License-Identifier: Apache-2.0
// What the devices of a plan send each other in a step.
#pragma once

#include "runtime/plan/Plan.h"

namespace dg::partitioner {

/// Bytes that one device sends in a step, by mesh axis.
struct Traffic {
  double tensorBytes = 0, dataBytes = 0, pipeBytes = 0;
  double totalBytes() const { return tensorBytes + dataBytes + pipeBytes; }
};

/// Of the device that sends most.
Traffic trafficOf(const plan::Plan &plan, const plan::Program &program);

} // namespace dg::partitioner
