// SPDX-License-Identifier: Apache-2.0
// Big-endian values, as IDX and some .npy files hold them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dg::data {

inline uint32_t readBigEndian32(const std::byte *from) {
  return uint32_t(from[0]) << 24 | uint32_t(from[1]) << 16 | uint32_t(from[2]) << 8 | uint32_t(from[3]);
}

/// Reverses the bytes of each element, in place.
inline void swapBytes(std::span<std::byte> bytes, size_t elementBytes) {
  for (size_t at = 0; at + elementBytes <= bytes.size(); at += elementBytes)
    std::reverse(bytes.begin() + ptrdiff_t(at), bytes.begin() + ptrdiff_t(at + elementBytes));
}

} // namespace dg::data
