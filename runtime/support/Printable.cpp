// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/Printable.h"

#include <cstddef>
#include <cstdint>

namespace dg {

/// Bytes of the UTF-8 character that begins there; 0 if none does.
static size_t lengthOfCharacter(std::string_view text) {
  const auto byteAt = [&](size_t i) { return uint8_t(text[i]); };
  const uint8_t first = byteAt(0);
  const size_t length = first < 0x80                    ? 1
                        : first >= 0xC2 && first < 0xE0 ? 2
                        : (first & 0xF0) == 0xE0        ? 3
                        : first >= 0xF0 && first < 0xF5 ? 4
                                                        : 0;
  if (length == 0 || length > text.size())
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byteAt(i) & 0xC0) != 0x80)
      return 0;
  return length;
}

std::string printable(std::string_view text) {
  std::string made;
  made.reserve(text.size());
  constexpr char digits[] = "0123456789abcdef";
  while (!text.empty()) {
    const size_t length = lengthOfCharacter(text);
    const auto first = uint8_t(text[0]);
    const bool isControl = (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F ||
                           (length == 2 && first == 0xC2 && uint8_t(text[1]) < 0xA0);
    const size_t taken = length == 0 ? 1 : length;
    for (char c : text.substr(0, taken)) {
      if (length != 0 && !isControl) {
        made += c;
        continue;
      }
      made += "\\x";
      made += digits[uint8_t(c) >> 4];
      made += digits[uint8_t(c) & 15];
    }
    text.remove_prefix(taken);
  }
  return made;
}

} // namespace dg
