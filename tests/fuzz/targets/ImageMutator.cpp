// SPDX-License-Identifier: Apache-2.0
// Bytes anywhere; in a PNG the sum of each chunk is made right afterwards, for a wrong one ends the image.
#include "tests/fuzz/Mutation.h"

#include <zlib.h>

using namespace dg::fuzz;

static uint32_t numberAt(const std::string &bytes, size_t at) {
  return uint32_t(uint8_t(bytes[at])) << 24 | uint32_t(uint8_t(bytes[at + 1])) << 16 |
         uint32_t(uint8_t(bytes[at + 2])) << 8 | uint32_t(uint8_t(bytes[at + 3]));
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return mutate(data, size, most, seed, [=](std::string_view bytes, Random &) -> std::optional<std::string> {
    std::string file(bytes);
    mutateBytes(file, most);
    if (!file.starts_with("\x89PNG\r\n\x1a\n"))
      return file;
    for (size_t at = 8; at + 12 <= file.size();) {
      const size_t count = numberAt(file, at);
      if (count > file.size() - at - 12)
        break;
      const uint32_t sum = uint32_t(crc32(0, reinterpret_cast<const Bytef *>(&file[at + 4]), uInt(count + 4)));
      for (size_t i = 0; i < 4; ++i)
        file[at + 8 + count + i] = char(sum >> (24 - 8 * i));
      at += count + 12;
    }
    return file;
  });
}
