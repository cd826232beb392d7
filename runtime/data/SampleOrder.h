// SPDX-License-Identifier: Apache-2.0
// The order in which an epoch visits the samples: a pure function of (seed, epoch, number of samples, kind of shuffle),
// so that every rank computes the same order for itself and a resumed run continues exactly.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dg::data {

/// How samples are mixed. A buffer of B samples gives each next sample from the B that are waiting, as streaming input
/// pipelines do; without a buffer the whole set is permuted.
struct Shuffle {
  enum class Kind { none, whole, buffer } kind = Kind::whole;
  int64_t bufferSize = 0; ///< buffer: > 0
  /// "none", "whole" or "buffer:1024": what a checkpoint's manifest keeps.
  std::string describe() const;
};

/// The sample visited at each position of epoch `epoch` (from 0). O(numSamples) time and memory.
std::vector<int64_t> sampleOrder(int64_t numSamples, const Shuffle &shuffle, uint64_t seed, int64_t epoch);

} // namespace dg::data
