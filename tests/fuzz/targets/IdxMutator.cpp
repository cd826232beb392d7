// SPDX-License-Identifier: Apache-2.0
// Type, rank and sizes of an IDX header with, mostly, the bytes that they ask for; gzip is opened and closed around it,
// because its checksum would stop every change.
#include "tests/fuzz/Mutation.h"
#include "tests/fuzz/ZipFile.h"

using namespace dg::fuzz;

static std::string makeFile(std::string_view old, Random &random) {
  static constexpr uint8_t types[] = {0x08, 0x09, 0x0B, 0x0C, 0x0D, 0x0E, 0x0A};
  static constexpr uint64_t widths[] = {1, 1, 2, 4, 4, 8, 1};
  size_t type = random.below(7), rank = random.oneIn(20) ? random.below(256) : 1 + random.below(4);
  std::string file = {'\0', '\0', char(types[type]), char(rank)};
  uint64_t bytes = widths[type];
  for (size_t i = 0; i < rank; ++i) {
    uint32_t size = uint32_t(random.oneIn(8) ? strangeNumber(random) : int64_t(random.below(9)));
    bytes *= size;
    for (int shift = 24; shift >= 0; shift -= 8)
      file += char(size >> shift);
  }
  if (random.oneIn(10))
    bytes += random.below(3) - 1;
  std::string data(old.substr(std::min<size_t>(old.size(), 16)));
  data.resize(std::min<uint64_t>(bytes, 1 << 12), 'x');
  return file + data;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return mutate(data, size, most, seed, [=](std::string_view bytes, Random &random) -> std::optional<std::string> {
    auto inflated = inflateText(bytes, gzipFormat, 1 << 16);
    std::string plain(inflated ? *inflated : bytes);
    if (random.oneIn(2))
      plain = makeFile(plain, random);
    else
      mutateBytes(plain, most);
    bool isPacked = bool(inflated) != random.oneIn(10);
    if (!isPacked)
      return plain;
    std::string packed = deflateText(plain, gzipFormat);
    if (random.oneIn(10))
      packed += deflateText(plain, gzipFormat);
    return packed;
  });
}
