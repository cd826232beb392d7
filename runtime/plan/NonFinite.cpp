// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/NonFinite.h"

#include <algorithm>
#include <cstring>

namespace dg::plan {

/// The first element whose exponent is all ones, or `count`. Blocks are tested without branches, so that the compiler
/// can use vectors.
template <typename Word> static size_t findNonFinite(const std::byte *bytes, size_t count, Word exponent) {
  constexpr size_t block = 1024;
  const Word *words = reinterpret_cast<const Word *>(bytes);
  for (size_t begin = 0; begin < count; begin += block) {
    size_t end = std::min(begin + block, count);
    unsigned bad = 0;
    for (size_t i = begin; i < end; ++i)
      bad |= (words[i] & exponent) == exponent;
    if (bad)
      for (size_t i = begin; i < end; ++i)
        if ((words[i] & exponent) == exponent)
          return i;
  }
  return count;
}

std::string describeNonFinite(std::span<const std::byte> bytes, DType type) {
  size_t count = bytes.size() / size_t(sizeOf(type)), at = count;
  uint64_t mantissa = 0;
  auto look = [&]<typename Word>(Word exponent, Word mantissaMask) {
    at = findNonFinite(bytes.data(), count, exponent);
    if (at == count)
      return;
    Word word;
    std::memcpy(&word, bytes.data() + at * sizeof word, sizeof word);
    mantissa = word & mantissaMask;
  };
  switch (type) {
  case DType::f64:
    look(uint64_t(0x7ff0000000000000), uint64_t(0x000fffffffffffff));
    break;
  case DType::bf16:
    look(uint16_t(0x7f80), uint16_t(0x007f));
    break;
  case DType::f16:
    look(uint16_t(0x7c00), uint16_t(0x03ff));
    break;
  default:
    look(uint32_t(0x7f800000), uint32_t(0x007fffff));
  }
  if (at == count)
    return "";
  return fmt::format("{} at element {} of {}", mantissa ? "nan" : "an infinity", at, count);
}

} // namespace dg::plan
