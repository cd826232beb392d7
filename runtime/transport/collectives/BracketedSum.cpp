// SPDX-License-Identifier: Apache-2.0
// Everything but rank-order goes tile by tile through scratch that stays in the cache.
#include "runtime/transport/collectives/BracketedSum.h"

#include "runtime/transport/collectives/Exchange.h"

#include <algorithm>
#include <bit>

namespace dg {

using plan::Bracketing;

BracketedSum::BracketedSum(plan::DType type, Bracketing bracketing, size_t groupSize, size_t total)
    : sum(sumInOrderFor(type)), bracketing(bracketing), groupSize(groupSize), total(total),
      elementBytes(size_t(plan::sizeOf(type))), isExact(type != plan::DType::bf16 && type != plan::DType::f16),
      current(groupSize) {
  if (bracketing.kind != Bracketing::Kind::rankOrder)
    scratch.resize(groupSize * tileElements * elementBytes);
}

/// In order of the group, from `first` round to the one before it.
void BracketedSum::addRound(void *const *outputs, size_t numOutputs, size_t first, size_t count) {
  std::rotate(current.begin(), current.begin() + int64_t(first), current.end());
  if (isExact || groupSize <= 2)
    return sum(outputs, numOutputs, current.data(), groupSize, count);
  // As on the way round: rounded after each addition.
  void *partial = scratchAt(0);
  const void *pair[2] = {current[0], current[1]};
  for (size_t next = 2; next < groupSize; ++next) {
    sum(&partial, 1, pair, 2, count);
    pair[0] = partial;
    pair[1] = current[next];
  }
  sum(outputs, numOutputs, pair, 2, count);
}

void BracketedSum::addTwoLevel(void *const *outputs, size_t numOutputs, size_t count) {
  size_t numBlocks = 0;
  for (size_t begin = 0; begin < groupSize; begin += bracketing.blockSize, ++numBlocks) {
    void *partial = scratchAt(numBlocks);
    sum(&partial, 1, current.data() + begin, std::min(bracketing.blockSize, groupSize - begin), count);
    current[numBlocks] = partial; // its summands were read
  }
  sum(outputs, numOutputs, current.data(), numBlocks, count);
}

void BracketedSum::addHalving(void *const *outputs, size_t numOutputs, size_t count) {
  auto addPair = [&](size_t to, size_t low, size_t high) {
    const void *pair[2] = {current[low], current[high]};
    void *partial = scratchAt(to);
    sum(&partial, 1, pair, 2, count);
    current[to] = partial;
  };
  size_t size = std::bit_floor(groupSize), numPairs = groupSize - size;
  for (size_t i = 0; i < numPairs; ++i)
    addPair(i, 2 * i, 2 * i + 1);
  for (size_t i = numPairs; i < size && numPairs > 0; ++i)
    current[i] = current[i + numPairs];
  for (size_t half = size / 2; half > 1; half /= 2)
    for (size_t i = 0; i < half; ++i)
      addPair(i, i, i + half);
  sum(outputs, numOutputs, current.data(), std::min<size_t>(size, 2), count);
}

void BracketedSum::add(void *const *outputs, size_t numOutputs, const void *const *inputs, size_t begin, size_t count) {
  if (bracketing.kind == Bracketing::Kind::rankOrder)
    return sum(outputs, numOutputs, inputs, groupSize, count);
  targets.assign(outputs, outputs + numOutputs);
  for (size_t done = 0; done < count;) {
    size_t size = std::min(tileElements, count - done), piece = 0;
    if (bracketing.kind == Bracketing::Kind::ring) {
      detail::Piece at = detail::pieceOf(total, groupSize, 0);
      while (at.begin + at.count <= begin + done)
        at = detail::pieceOf(total, groupSize, ++piece);
      size = std::min(size, at.begin + at.count - (begin + done));
    }
    for (size_t member = 0; member < groupSize; ++member)
      current[member] = static_cast<const char *>(inputs[member]) + done * elementBytes;
    for (size_t k = 0; k < numOutputs; ++k)
      targets[k] = static_cast<char *>(outputs[k]) + done * elementBytes;
    switch (bracketing.kind) {
    case Bracketing::Kind::twoLevel:
      addTwoLevel(targets.data(), numOutputs, size);
      break;
    case Bracketing::Kind::ring:
      addRound(targets.data(), numOutputs, (piece + 1) % groupSize, size);
      break;
    default:
      addHalving(targets.data(), numOutputs, size);
    }
    done += size;
  }
}

} // namespace dg
