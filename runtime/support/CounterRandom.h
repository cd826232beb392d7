// SPDX-License-Identifier: Apache-2.0
// The counter-based generator (Philox4x32-10, Salmon et al., SC'11) behind every random number of DG: initial values,
// shuffles, random data. A number depends only on (seed, stream, index in the *global* tensor), so any plan, any rank
// and any order draw the same numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace dg {

/// 64-bit FNV-1a of a name: the stream of a parameter or a data source.
uint64_t streamOf(std::string_view name);

/// Four 32-bit words for (seed, stream, counter). Pure.
std::array<uint32_t, 4> philox(uint64_t seed, uint64_t stream, uint64_t counter);

/// Uniform in [0, 1) with 24 bits: word index % 4 of counter index / 4.
float uniformAt(uint64_t seed, uint64_t stream, uint64_t index);
/// Standard normal by Box-Muller on words 0 and 1 of counter `index`.
float normalAt(uint64_t seed, uint64_t stream, uint64_t index);
/// Uniform integer in [0, bound), bound > 0, by multiplication (bias below 2^-32 for bounds below 2^32).
uint64_t integerAt(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound);

} // namespace dg
