// SPDX-License-Identifier: Apache-2.0
// Objects keep their form: words become their neighbours, strange, or other words of the object. Random bytes would end
// at the header.
#include "tests/fuzz/Mutation.h"

#include <cstring>

using namespace dg::fuzz;

static uint64_t wordAt(const std::string &bytes, size_t at, size_t width) {
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + at, width);
  return word;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return mutate(data, size, most, seed, [](std::string_view bytes, Random &random) -> std::optional<std::string> {
    std::string object(bytes);
    for (size_t change = 0; change <= random.below(3); ++change) {
      const size_t width = random.oneIn(3) ? 4 : 8;
      if (object.size() < 64 + width)
        return std::nullopt;
      // Headers lie in front; one in four changes is anywhere.
      const size_t range = random.oneIn(4) ? object.size() : std::min<size_t>(object.size(), 1024);
      const size_t at = random.below(range / width) * width, other = random.below(object.size() / width) * width;
      const uint64_t word = wordAt(object, at, width);
      const uint64_t changed[] = {uint64_t(strangeNumber(random)), word + 1, word - 1,
                                  word + uint64_t(strangeNumber(random)), wordAt(object, other, width)};
      overwrite(object, at, width, random.oneOf(changed));
    }
    return object;
  });
}
