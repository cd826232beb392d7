// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Dealing.h"

#include <algorithm>

namespace dg::data {

Block blockOf(int64_t count, int64_t parts, int64_t index) {
  int64_t small = count / parts, larger = count % parts;
  return {index * small + std::min(index, larger), small + (index < larger ? 1 : 0)};
}

Deal dealOf(const plan::Plan &plan, const plan::Program &program, plan::Coordinates at) {
  auto [begin, end] = program.microbatchesOf(at.replica);
  return {int64_t(program.microbatches), plan.mesh.sizeOf(plan::Axis::data), Block{begin, int64_t(end) - begin}};
}

Block dealtTo(int64_t samples, Deal deal, int64_t microbatch, int64_t dataRank) {
  if (deal.own && (microbatch < deal.own->begin || microbatch >= deal.own->begin + deal.own->size))
    return {};
  Block micro = blockOf(samples, deal.microbatches, microbatch);
  Block mine = blockOf(micro.size, deal.dataRanks, dataRank);
  return {micro.begin + mine.begin, mine.size};
}

int64_t rowsNeeded(int64_t samples, Deal deal) {
  // The first blocks are the largest.
  return dealtTo(samples, {deal.microbatches, deal.dataRanks}, 0, 0).size;
}

} // namespace dg::data
