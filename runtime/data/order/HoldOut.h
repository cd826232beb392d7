// SPDX-License-Identifier: Apache-2.0
// Which samples of a data set are held out for evaluation (--validation): a pure function of the seed, so that every
// rank and every resumed run holds out the same.
#pragma once

#include <cstdint>
#include <vector>

namespace dg::data {

/// Samples by number, ascending; each is in one of the two.
struct HoldOut {
  std::vector<int64_t> training, validation;
};

/// Draws round(numSamples · fraction) samples for validation, without replacement.
HoldOut holdOut(int64_t numSamples, double fraction, uint64_t seed);

} // namespace dg::data
