// SPDX-License-Identifier: Apache-2.0
// --normalize x=M,M,M/S,S,S: another mean and deviation for each channel of a sample, after it was converted and its
// channels stand first.
#pragma once

#include "runtime/data/Conversion.h"

#include <string>
#include <vector>

namespace dg::data {

class ChannelNormalization {
public:
  ChannelNormalization() = default; ///< changes nothing
  /// Fails (usage, without the flag) unless samples of that shape have as many channels, in f32 or f64.
  static Result<ChannelNormalization> make(std::vector<Normalization> channels, const std::vector<int64_t> &sampleShape,
                                           plan::DType dtype);
  bool isEmpty() const { return channels.empty(); }
  /// In place, on one sample.
  void apply(std::byte *sample) const;
  /// "channels 0.5,0.5/0.25,0.25", or nothing.
  std::string describe() const;

private:
  template <typename T> void applyAs(std::byte *sample) const;
  std::vector<Normalization> channels;
  int64_t perChannel = 0;
  bool isWide = false;
};

/// Reads "M,M,M/S,S,S". Fails (usage).
Result<std::vector<Normalization>> parseChannelNormalization(const std::string &text);

} // namespace dg::data
