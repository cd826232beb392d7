// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/Segment.h"

#include <cstring>

namespace dg {

static void runBlockCopy(const BlockCopy &copy, void *const *buffers, uint32_t numBuffers) {
  if (copy.rows == 0)
    return;
  // The source of a zero task is never read.
  const std::byte *from = static_cast<const std::byte *>(buffers[0]) + copy.fromOffset;
  std::byte *to = static_cast<std::byte *>(buffers[numBuffers - 1]);
  for (size_t row = 0; row < copy.rows; ++row, from += copy.fromStride, to += copy.toBytes) {
    if (copy.copiedBytes > 0)
      std::memcpy(to, from, copy.copiedBytes);
    if (copy.copiedBytes < copy.toBytes)
      std::memset(to + copy.copiedBytes, 0, copy.toBytes - copy.copiedBytes);
  }
}

void Node::runTile(uint32_t index, const dg_scalars &scalars, uint32_t tile) const {
  if (kind == NodeKind::kernel)
    kernel(row(index), &scalars, tile);
  else
    runBlockCopy(copy, row(index), numBuffers);
}

} // namespace dg
