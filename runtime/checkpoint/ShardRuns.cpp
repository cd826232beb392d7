// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/ShardRuns.h"

#include <algorithm>

namespace dg::checkpoint {

std::vector<ShardRun> shardRunsOf(const plan::Value &value, const plan::Mesh &mesh, plan::Coordinates at) {
  size_t rank = value.globalShape.size();
  std::vector<int64_t> start(rank, 0), extent(rank), localStride(rank, 1), globalStride(rank, 1);
  for (size_t dim = 0; dim < rank; ++dim) {
    int64_t global = value.globalShape[dim];
    if (dim < value.sharding.size() && value.sharding[dim]) {
      int64_t parts = mesh.sizeOf(*value.sharding[dim]);
      start[dim] = (global + parts - 1) / parts * at[*value.sharding[dim]];
    }
    extent[dim] = std::clamp<int64_t>(global - start[dim], 0, value.shape[dim]);
    if (extent[dim] == 0)
      return {};
  }
  for (size_t dim = rank; dim-- > 1;) {
    localStride[dim - 1] = localStride[dim] * value.shape[dim];
    globalStride[dim - 1] = globalStride[dim] * value.globalShape[dim];
  }
  // Dimensions behind the last cut one are whole on both sides, so that they and the cut one form a single run.
  size_t inner = rank;
  int64_t elements = 1;
  while (inner > 0) {
    --inner;
    elements *= extent[inner];
    if (extent[inner] != value.globalShape[inner] || extent[inner] != value.shape[inner])
      break;
  }
  std::vector<ShardRun> runs;
  std::vector<int64_t> index(inner, 0);
  while (true) {
    ShardRun run{0, 0, elements};
    for (size_t dim = 0; dim < rank; ++dim) {
      int64_t at = dim < inner ? index[dim] : 0;
      run.local += at * localStride[dim];
      run.global += (start[dim] + at) * globalStride[dim];
    }
    runs.push_back(run);
    size_t dim = inner;
    while (dim > 0 && ++index[dim - 1] == extent[dim - 1])
      index[--dim] = 0;
    if (dim == 0)
      return runs;
  }
}

} // namespace dg::checkpoint
