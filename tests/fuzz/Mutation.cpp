// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/Mutation.h"

#include <climits>
#include <cstring>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

namespace dg::fuzz {

uint64_t Random::next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

int64_t strangeNumber(Random &random) {
  static constexpr int64_t borders[] = {
      0,        1,        2,        7,        8,        63,       64,           65,       127,
      128,      255,      256,      4095,     4096,     65535,    65536,        1 << 20,  INT_MAX,
      UINT_MAX, 1L << 32, 1L << 48, 1L << 52, 1L << 62, LONG_MAX, LONG_MAX - 1, LONG_MIN, LONG_MIN + 1,
      INT_MIN,  -1,       -2,       -64};
  switch (random.below(4)) {
  case 0:
    return random.oneOf(borders);
  case 1:
    return int64_t(random.below(1000));
  default:
    return int64_t(random.below(12));
  }
}

void mutateBytes(std::string &text, size_t most) {
  if (most == 0)
    return;
  std::vector<uint8_t> bytes(most);
  size_t size = std::min(text.size(), most);
  std::memcpy(bytes.data(), text.data(), size);
  size = LLVMFuzzerMutate(bytes.data(), size, most);
  text.assign(reinterpret_cast<const char *>(bytes.data()), size);
}

void overwrite(std::string &bytes, size_t at, size_t width, uint64_t number) {
  for (size_t i = 0; i < width && at + i < bytes.size(); ++i)
    bytes[at + i] = char(number >> (8 * i));
}

size_t mutate(uint8_t *data, size_t size, size_t most, unsigned seed, const Mutation &mutation) {
  Random random(seed);
  if (random.oneIn(8))
    return LLVMFuzzerMutate(data, size, most);
  std::optional<std::string> result = mutation({reinterpret_cast<const char *>(data), size}, random);
  if (!result || result->size() > most)
    return LLVMFuzzerMutate(data, size, most);
  std::memcpy(data, result->data(), result->size());
  return result->size();
}

} // namespace dg::fuzz
