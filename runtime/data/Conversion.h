// SPDX-License-Identifier: Apache-2.0
// From the elements of a file to the elements of a graph argument. Chosen once at set-up, so that a step runs one tight
// loop.
#pragma once

#include "runtime/data/format/Tensor.h"
#include "runtime/plan/Plan.h"
#include "runtime/support/Status.h"

#include <optional>
#include <string>
#include <vector>

namespace dg::data {

/// (value - mean) / deviation, after bytes were scaled to [0, 1].
struct Normalization {
  float mean = 0, deviation = 1;
};

/// Images of `pixels` times `channels` elements that become `channels` times `pixels`; without channels: as they are.
struct ChannelsLast {
  int64_t images = 0, pixels = 0, channels = 0;
};

/// Bytes (u8) that feed a float argument are scaled to [0, 1]; other numbers keep their value; integers may not become
/// narrower unless each value fits; floats never become integers.
class Conversion {
public:
  /// Fails (badInput, without a file name) if there is no meaningful conversion.
  static Result<Conversion> make(DType from, DType to, std::optional<Normalization> normalization);

  /// Converts `count` elements. False if a value does not fit the argument's type. `from` need not be aligned.
  bool run(const std::byte *from, std::byte *to, int64_t count) const { return function(*this, from, to, count); }

  /// The same for images whose channels, at least one, are last.
  bool run(const std::byte *from, std::byte *to, const ChannelsLast &layout) const;

  /// Bytes of one element of the argument.
  int64_t targetBytes() const { return bytesPerTarget; }
  /// "normalize 0.5,0.25", or nothing.
  std::string describe() const;

private:
  using Function = bool (*)(const Conversion &, const std::byte *, std::byte *, int64_t);
  template <typename From, typename To>
  static bool convert(const Conversion &, const std::byte *, std::byte *, int64_t);
  static Function choose(DType from, DType to);
  static bool copy(const Conversion &, const std::byte *, std::byte *, int64_t);
  template <size_t Bytes> static bool lookUp(const Conversion &, const std::byte *, std::byte *, int64_t);
  void tabulate();
  Function function = nullptr;
  Normalization normalization;
  bool normalizes = false;
  int64_t bytesPerSource = 0, bytesPerTarget = 0;
  std::vector<std::byte> table; ///< what each byte becomes, where bytes become floats
};

} // namespace dg::data
