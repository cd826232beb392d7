// SPDX-License-Identifier: Apache-2.0
// What a device holds while a step runs, by kind, along the predicted timeline.
#pragma once

#include "tools/dgviz/time/Timeline.h"

#include <array>

namespace dg::viz {

/// Kinds of values as people speak of them.
enum class Holding { parameters, optimizer, activations, gradients, buffers };
constexpr auto enumNames(Holding) {
  return std::array{"parameters", "optimizer", "activations", "gradients", "buffers"};
}
using dg::nameOf;
inline constexpr size_t numHoldings = allOf<Holding>().size();
Holding holdingOf(plan::ValueKind kind);

struct MemoryPoint {
  double timeUs = 0;
  std::array<uint64_t, numHoldings> bytes = {};
  uint64_t total() const;
};

/// A tensor of one micro-batch that is alive at the peak.
struct LiveTensor {
  plan::ValueId value = 0;
  uint32_t microbatch = 0;
  uint64_t bytes = 0;
};

struct MemoryCurve {
  std::vector<MemoryPoint> points; ///< each holds until the next; at most some hundred, none of them above the peak
  MemoryPoint peak;
  std::vector<LiveTensor> atPeak; ///< largest first; their bytes add up to the peak
};

/// Per stage. A tensor lives from the start of the first op that touches it to the end of the last; parameters,
/// optimizer state and constants always, inputs from the start of the step, outputs to its end. Values with one place
/// (views, in-place ops) count once while any of them lives. The arena may be larger than the peak: it also has what
/// lies unused between tensors of different lifetimes.
std::vector<MemoryCurve> memoryCurves(const plan::Plan &plan, const plan::Program &program, const Timeline &predicted);

} // namespace dg::viz
