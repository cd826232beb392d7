// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/SampleOrder.h"

#include "runtime/support/CounterRandom.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace dg::data {

std::string Shuffle::describe() const {
  switch (kind) {
  case Kind::none:
    return "none";
  case Kind::whole:
    return "whole";
  case Kind::buffer:
    return fmt::format("buffer:{}", bufferSize);
  }
  return "none";
}

/// Fisher-Yates from the end (Knuth, TAOCP 3.4.2, algorithm P).
static void permute(std::vector<int64_t> &order, uint64_t seed, uint64_t stream) {
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[integerAt(seed, stream, i, i)]);
}

static std::vector<int64_t> throughBuffer(int64_t numSamples, int64_t bufferSize, uint64_t seed, uint64_t stream) {
  std::vector<int64_t> buffer(size_t(std::min(bufferSize, numSamples)));
  std::iota(buffer.begin(), buffer.end(), int64_t(0));
  std::vector<int64_t> order;
  order.reserve(size_t(numSamples));
  int64_t next = int64_t(buffer.size());
  while (!buffer.empty()) {
    size_t pick = integerAt(seed, stream, order.size(), buffer.size());
    order.push_back(buffer[pick]);
    if (next < numSamples) {
      buffer[pick] = next++;
    } else {
      buffer[pick] = buffer.back();
      buffer.pop_back();
    }
  }
  return order;
}

std::vector<int64_t> sampleOrder(int64_t numSamples, const Shuffle &shuffle, uint64_t seed, int64_t epoch) {
  uint64_t stream = streamOf(fmt::format("shuffle of epoch {}", epoch));
  if (shuffle.kind == Shuffle::Kind::buffer)
    return throughBuffer(numSamples, shuffle.bufferSize, seed, stream);
  std::vector<int64_t> order(size_t(std::max<int64_t>(numSamples, 0)));
  std::iota(order.begin(), order.end(), int64_t(0));
  if (shuffle.kind == Shuffle::Kind::whole)
    permute(order, seed, stream);
  return order;
}

} // namespace dg::data
