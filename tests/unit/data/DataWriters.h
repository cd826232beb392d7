// SPDX-License-Identifier: Apache-2.0
// The smallest writers of tar and PNG that a test can make right and wrong files with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>
#include <zlib.h>

namespace dg::test {

/// One member of a tar archive, with its padding. `type` as in the header.
inline std::string tarMember(const std::string &name, const std::string &content, char type = '0') {
  std::string header(512, '\0');
  auto put = [&](size_t at, const std::string &text) { header.replace(at, text.size(), text); };
  auto octal = [](uint64_t number, size_t digits) {
    std::string text(digits, '0');
    for (size_t i = digits; i-- > 0; number /= 8)
      text[i] = char('0' + number % 8);
    return text;
  };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, octal(content.size(), 11));
  put(136, octal(0, 11));
  put(156, std::string(1, type));
  put(257, std::string("ustar\0", 6) + "00");
  put(148, "        ");
  uint64_t sum = 0;
  for (char c : header)
    sum += uint8_t(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

inline std::string tarEnd() { return std::string(1024, '\0'); }

/// A PNG of 8 bits (or `depth`) a channel; colour type 0 grey, 2 rgb, 3 palette, 4 grey and alpha, 6 rgb and alpha.
inline std::string png(uint32_t width, uint32_t height, uint8_t colourType, const std::string &rows, uint8_t depth = 8,
                       const std::string &palette = "") {
  auto number = [](uint32_t value) {
    return std::string{char(value >> 24), char(value >> 16), char(value >> 8), char(value)};
  };
  auto chunk = [&](const std::string &name, const std::string &content) {
    const std::string body = name + content;
    return number(uint32_t(content.size())) + body +
           number(uint32_t(crc32(0, reinterpret_cast<const Bytef *>(body.data()), uInt(body.size()))));
  };
  const size_t rowBytes = height > 0 ? rows.size() / height : 0;
  std::string filtered;
  for (uint32_t row = 0; row < height; ++row)
    filtered += '\0' + rows.substr(row * rowBytes, rowBytes);
  std::string packed(compressBound(filtered.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef *>(packed.data()), &size, reinterpret_cast<const Bytef *>(filtered.data()),
           filtered.size());
  packed.resize(size);
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", number(width) + number(height) + char(depth) + char(colourType) + std::string(3, '\0')) +
         (palette.empty() ? "" : chunk("PLTE", palette)) + chunk("IDAT", packed) + chunk("IEND", "");
}

} // namespace dg::test
