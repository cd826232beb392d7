// SPDX-License-Identifier: Apache-2.0
// The order in which an epoch visits the samples: a pure function of (seed, epoch, number of samples, kind of shuffle),
// so that every rank computes the same order for itself and a resumed run continues exactly.
#pragma once

#include "runtime/data/order/Permutation.h"

#include <span>
#include <string>

namespace dg::data {

/// How samples are mixed: the whole set is permuted, or it is cut into windows of consecutive samples, which are
/// permuted, as the samples in each are. Windows keep reading local.
struct Shuffle {
  enum class Kind { none, random, window } kind = Kind::random;
  int64_t windowSize = 0; ///< window: > 0
  /// "none", "random" or "window:1024": what a checkpoint's manifest keeps.
  std::string describe() const;
};

/// The order of one epoch (from 0). Of constant size; any thread may ask it.
class SampleOrder {
public:
  SampleOrder(int64_t numSamples, const Shuffle &shuffle, uint64_t seed, int64_t epoch);
  /// The sample that is visited at `position`, 0 <= position < numSamples.
  int64_t operator[](int64_t position) const;
  /// The samples at `position` and after it, as many as `out` takes.
  void fill(int64_t position, std::span<int64_t> out) const;

private:
  struct Window {
    int64_t number, begin, size; ///< begin: its first position
  };
  Window windowAt(int64_t position) const;

  Shuffle::Kind kind;
  int64_t windowSize, numFull; ///< window; and how many windows have all of their samples
  int64_t numLast;             ///< samples of the last window, if it is smaller
  int64_t lastAt;              ///< how many full windows are visited before it
  uint64_t key;
  Permutation whole; ///< random: of the samples; window: of the full windows
};

} // namespace dg::data
