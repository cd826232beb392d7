// SPDX-License-Identifier: Apache-2.0
// bf16 as stored: the upper half of a float. Shared by data, transport, executor and the reference executor.
#pragma once

#include <bit>
#include <cstdint>

namespace dg {

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  /// Rounds to nearest, ties to even; NaN stays NaN.
  explicit BFloat16(float value) {
    uint32_t word = std::bit_cast<uint32_t>(value);
    bits = value != value ? uint16_t(word >> 16 | 0x40) : uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
  explicit operator double() const { return double(float(*this)); }
};

} // namespace dg
