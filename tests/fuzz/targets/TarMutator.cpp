// SPDX-License-Identifier: Apache-2.0
// Fields of headers, with the sum of each header made right afterwards: a wrong one ends the archive.
#include "tests/fuzz/Mutation.h"

#include <cstdio>

using namespace dg::fuzz;

static constexpr size_t blockBytes = 512;

static void correctSum(std::string &bytes, size_t at) {
  bytes.replace(at + 148, 8, "        ");
  unsigned sum = 0;
  for (size_t i = 0; i < blockBytes; ++i)
    sum += uint8_t(bytes[at + i]);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum & 0777777);
  bytes.replace(at + 148, 7, std::string(text, 7));
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return mutate(data, size, most, seed, [](std::string_view bytes, Random &random) -> std::optional<std::string> {
    std::string file(bytes);
    if (file.size() < blockBytes)
      return std::nullopt;
    const size_t at = random.below(file.size() / blockBytes) * blockBytes;
    static constexpr const char *sizes[] = {"00000000000", "00000000001", "00000001000", "77777777777", "-0000000001"};
    switch (random.below(5)) {
    case 0:
      file.replace(at + 124, 11, random.oneOf(sizes));
      break;
    case 1:
      file[at + 156] = "01234567xgLKSV"[random.below(14)];
      break;
    case 2:
      file.insert(at, file.substr(random.below(file.size() / blockBytes) * blockBytes, blockBytes));
      break;
    case 3:
      file.replace(at, 4, random.oneIn(2) ? "../a" : "/abc");
      break;
    default:
      for (size_t changes = 1 + random.below(4); changes > 0; --changes)
        file[at + random.below(blockBytes)] = char(random.next());
    }
    for (size_t block = 0; block + blockBytes <= file.size(); block += blockBytes)
      if (file.substr(block + 257, 5) == "ustar" || block == at)
        correctSum(file, block);
    return file;
  });
}
