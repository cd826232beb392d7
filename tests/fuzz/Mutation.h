// SPDX-License-Identifier: Apache-2.0
// What the structure-aware mutators share: a generator, numbers that are worth trying, libFuzzer's own mutation of a
// text, and the frame around a mutator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace dg::fuzz {

/// splitmix64: the same seed, the same mutation.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  size_t below(size_t bound) { return bound ? size_t(next() % bound) : 0; }
  bool oneIn(size_t n) { return below(n) == 0; }
  template <typename List> auto &oneOf(List &&list) { return list[below(std::size(list))]; }

private:
  uint64_t state;
};

/// Borders of types and sizes, or a small number.
int64_t strangeNumber(Random &random);

/// libFuzzer's mutations on a text, at most `most` bytes long afterwards.
void mutateBytes(std::string &text, size_t most);

/// Overwrites `width` bytes at `at` with a number, little-endian, as far as there are bytes.
void overwrite(std::string &bytes, size_t at, size_t width, uint64_t number);

/// A mutation that understands the input; nothing if it cannot make sense of it.
using Mutation = std::function<std::optional<std::string>(std::string_view bytes, Random &random)>;

/// The body of LLVMFuzzerCustomMutator: mostly `mutation`, else (and where the result is too long) libFuzzer's own.
size_t mutate(uint8_t *data, size_t size, size_t most, unsigned seed, const Mutation &mutation);

} // namespace dg::fuzz
