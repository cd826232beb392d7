// SPDX-License-Identifier: Apache-2.0
// Which ops of a forward pass to run again in the backward pass so that less memory is live at once: the choice, on
// plain numbers. The pass Rematerialize makes the numbers of a graph and carries the choice out.
#pragma once

#include <cstdint>
#include <vector>

namespace dg::passes {

/// One op of a stage, in the order in which the stage runs them: all of the forward pass, then the rest.
struct StepOp {
  std::vector<uint32_t> reads;  ///< values, each made by an op before this one
  std::vector<uint32_t> writes; ///< values that this op makes; no other does
  double cost = 0;              ///< of running it once more, in any unit
  bool isForward = true;
  bool canRepeat = false; ///< a forward op that gives the same values when it runs again
};

struct Step {
  std::vector<StepOp> ops;
  std::vector<double> bytes; ///< by value
};

/// The most bytes that are live at once when the ops of `repeated` run again, each just before the first op behind the
/// forward pass that needs it, and their values are not kept for it. O(ops + uses).
double peakBytes(const Step &step, const std::vector<bool> &repeated);

/// Ops to run again so that the peak falls by `savedBytes`, or as far as it goes: cheapest for each byte first, as long
/// as the peak falls; then those are taken back without which it is as low. At most `maxTrials` peaks are computed.
std::vector<bool> chooseRepeated(const Step &step, double savedBytes, uint32_t maxTrials = 4000);

} // namespace dg::passes
