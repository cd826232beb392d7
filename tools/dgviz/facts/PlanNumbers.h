// SPDX-License-Identifier: Apache-2.0
// The numbers of a plan that the page and the text summary show: memory by kind, traffic by collective, units for
// people.
#pragma once

#include "runtime/plan/Plan.h"

#include <string>
#include <vector>

namespace dg::viz {

/// What the values of one kind take on one stage. Values with the same place are counted once.
struct KindMemory {
  std::string kind;
  uint64_t values = 0, bytes = 0;
};

/// Per stage the kinds that occur, in the order of ValueKind. Temporaries share bytes, so a sum may exceed the arena.
std::vector<std::vector<KindMemory>> memoryByKind(const plan::Plan &plan);

/// What one rank moves in a step by one kind of communication.
struct Traffic {
  std::string op, axis; ///< axis: "pipe" for sends
  uint32_t stage = 0;
  uint64_t calls = 0, bytes = 0; ///< of the values, over all micro-batches
};

/// In the order of stage, op and axis. A receive is counted by its send.
std::vector<Traffic> trafficOf(const plan::Plan &plan, const plan::Program &program);

/// "1.50 MiB", "12.3 ms", "1.2 GFLOP".
std::string bytesText(double bytes);
std::string timeText(double microseconds);
std::string countText(double count);

} // namespace dg::viz
