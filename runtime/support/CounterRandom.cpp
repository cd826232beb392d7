// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/CounterRandom.h"

#include <cmath>

namespace dg {

uint64_t streamOf(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : name)
    hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

std::array<uint32_t, 4> philox(uint64_t seed, uint64_t stream, uint64_t counter) {
  uint32_t c0 = uint32_t(counter), c1 = uint32_t(counter >> 32), c2 = uint32_t(stream), c3 = uint32_t(stream >> 32);
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p0 = uint64_t(0xD2511F53u) * c0, p1 = uint64_t(0xCD9E8D57u) * c2;
    uint32_t n0 = uint32_t(p1 >> 32) ^ c1 ^ k0, n2 = uint32_t(p0 >> 32) ^ c3 ^ k1;
    c1 = uint32_t(p1), c3 = uint32_t(p0), c0 = n0, c2 = n2;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

static float toUnit(uint32_t word) { return float(word >> 8) * 0x1p-24f; }

float uniformAt(uint64_t seed, uint64_t stream, uint64_t index) {
  return toUnit(philox(seed, stream, index / 4)[index % 4]);
}

float normalAt(uint64_t seed, uint64_t stream, uint64_t index) {
  auto words = philox(seed, stream, index);
  double radius = std::sqrt(-2.0 * std::log1p(-double(toUnit(words[0]))));
  return float(radius * std::cos(6.283185307179586 * double(toUnit(words[1]))));
}

uint64_t integerAt(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound) {
  auto words = philox(seed, stream, index);
  uint64_t wide = uint64_t(words[1]) << 32 | words[0];
  return uint64_t((unsigned __int128)wide * bound >> 64);
}

} // namespace dg
