// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/order/HoldOut.h"

#include "runtime/support/CounterRandom.h"

#include <algorithm>
#include <cmath>

namespace dg::data {

HoldOut holdOut(int64_t numSamples, double fraction, uint64_t seed) {
  HoldOut out;
  int64_t wanted = std::clamp<int64_t>(std::llround(double(numSamples) * fraction), 0, numSamples);
  // Selection sampling (Knuth, TAOCP 3.4.2, algorithm S): one draw for each sample, in their order.
  const uint64_t stream = streamOf("validation");
  for (int64_t sample = 0; sample < numSamples; ++sample) {
    const bool isTaken = int64_t(integerAt(seed, stream, uint64_t(sample), uint64_t(numSamples - sample))) < wanted;
    wanted -= isTaken;
    (isTaken ? out.validation : out.training).push_back(sample);
  }
  return out;
}

} // namespace dg::data
