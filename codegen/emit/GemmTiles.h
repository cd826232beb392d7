// SPDX-License-Identifier: Apache-2.0
// Products of bf16 in the tile registers of AMX. A tile is always whole: 16 rows of 64 bytes, which are 16 sums in f32
// or 16 pairs of bf16. With one shape there is one configuration, which LLVM loads once in a call of a kernel; what a
// matrix lacks to whole tiles is padded where it is packed.
//
// MLIR has no type for a tile that a loop could carry. The loop over the depth is therefore a function in LLVM's own
// terms, which kernels call, and which is inlined into them.
#pragma once

#include "codegen/emit/KernelBuilder.h"

namespace llvm {
class Module;
} // namespace llvm

namespace dg::codegen {

/// Rows of a tile; also the sums, or pairs, in a row.
constexpr int64_t tileRows = 16;

/// The first element of some tiles; `rowStride` counts elements of the buffer.
struct TilesRef {
  Value buffer, at;
  int64_t rowStride;
};

/// sums = left · right for rowTiles × columnTiles tiles of sums, each 1 or 2. The pairs of a row of `left` lie side by
/// side; a row of `right` has one pair of each column. `depth`, in pairs, is rounded up to whole tiles, and subnormal
/// numbers count as 0.
void multiplyTiles(KernelBuilder &k, const TilesRef &left, const TilesRef &right, const TilesRef &sums,
                   int64_t rowTiles, int64_t columnTiles, Value depth);

/// Gives the functions that multiplyTiles calls their bodies.
void defineTileProducts(llvm::Module &module);

} // namespace dg::codegen
