// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/order/SampleOrder.h"

#include "runtime/support/CounterRandom.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace dg::data {

std::string Shuffle::describe() const {
  switch (kind) {
  case Kind::none:
    return "none";
  case Kind::random:
    return "random";
  case Kind::window:
    return fmt::format("window:{}", windowSize);
  }
  return "none";
}

/// 64 bits for one permutation of an epoch: of the set (0), or of a window (its number + 1).
static uint64_t keyOf(uint64_t epochKey, uint64_t permutation) {
  auto words = philox(epochKey, streamOf("permutation"), permutation);
  return uint64_t(words[1]) << 32 | words[0];
}

static uint64_t epochKeyOf(uint64_t seed, int64_t epoch) {
  auto words = philox(seed, streamOf("order of samples"), uint64_t(epoch));
  return uint64_t(words[1]) << 32 | words[0];
}

SampleOrder::SampleOrder(int64_t numSamples, const Shuffle &shuffle, uint64_t seed, int64_t epoch)
    : kind(shuffle.kind), windowSize(kind == Shuffle::Kind::window
                                         ? std::clamp<int64_t>(shuffle.windowSize, 1, std::max<int64_t>(numSamples, 1))
                                         : 1),
      numFull(numSamples / windowSize), numLast(numSamples % windowSize), lastAt(0), key(epochKeyOf(seed, epoch)),
      whole(numFull, keyOf(key, 0)) {
  // Where the smaller window stands among the others is drawn too: so every order of all windows is as likely.
  if (numLast > 0)
    lastAt = int64_t(integerAt(key, streamOf("last window"), 0, uint64_t(numFull) + 1));
}

SampleOrder::Window SampleOrder::windowAt(int64_t position) const {
  const int64_t lastBegin = lastAt * windowSize;
  if (position >= lastBegin && position < lastBegin + numLast)
    return {numFull, lastBegin, numLast};
  const int64_t among = position < lastBegin ? position : position - numLast;
  return {whole[among / windowSize], position - among % windowSize, windowSize};
}

void SampleOrder::fill(int64_t position, std::span<int64_t> out) const {
  if (kind == Shuffle::Kind::none)
    return std::iota(out.begin(), out.end(), position);
  if (kind == Shuffle::Kind::random)
    return whole.fill(position, out);
  while (!out.empty()) {
    const Window window = windowAt(position);
    const std::span<int64_t> part = out.first(std::min(out.size(), size_t(window.begin + window.size - position)));
    Permutation(window.size, keyOf(key, uint64_t(window.number) + 1)).fill(position - window.begin, part);
    for (int64_t &sample : part)
      sample += window.number * windowSize;
    position += int64_t(part.size());
    out = out.subspan(part.size());
  }
}

int64_t SampleOrder::operator[](int64_t position) const {
  if (kind == Shuffle::Kind::random)
    return whole[position];
  int64_t sample = 0;
  fill(position, std::span(&sample, 1));
  return sample;
}

} // namespace dg::data
