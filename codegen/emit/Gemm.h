// SPDX-License-Identifier: Apache-2.0
// Matrix products of static shape, blocked for registers and caches after Goto and van de Geijn ("Anatomy of
// high-performance matrix multiplication", 2008). Matrix products and convolutions are both made of these blocks.
//
//   Columns are cut into panels of one or two vectors, rows into panels of 4 to 14 rows: one panel of rows times one
//   panel of columns is the microkernel, whose sums stay in registers. A block is some panels of rows × some panels of
//   columns: what one tile of the grid computes. For each slice of the depth k it packs its columns once, then walks
//   its rows. Where tile registers (AMX) hold the sums, panels have 32 rows.
#pragma once

#include "codegen/emit/KernelBuilder.h"

namespace dg::codegen {

/// A matrix in a flat buffer: element (i, j) is at offset + i · rowStride + j · columnStride. One of the strides is 1.
struct MatrixRef {
  Value buffer, offset;
  int64_t rowStride, columnStride;
};

/// The cut of c[m,n] = a[m,k] · b[k,n].
struct GemmBlocking {
  int64_t m, n, k;
  int64_t panelColumns; ///< columns of a full panel
  int64_t columnPanels; ///< the last may be narrower
  int64_t rowPanels;    ///< the first `numTallPanels` have `panelRows` rows, the others `shortRows`
  int64_t panelRows, shortRows, numTallPanels;
  int64_t depth; ///< of one slice of k
  int64_t rowPanelsPerBlock, columnPanelsPerBlock, rowBlocks, columnBlocks;
  bool packsLeft, packsRight;
  bool addsToResult = false; ///< c += a · b
  mlir::Type factors;        ///< f16 or bf16: both factors are rounded to it; null: they are what they are
  bool isPaired = false;     ///< k and depth count pairs of bf16, see FactorReader
  bool usesTiles = false;    ///< sums are made in the tile registers of AMX; isPaired
  bool keepsSums = false;    ///< sums of one slice wait for the next on the stack, because the result is narrower

  /// `left` and `right` need their strides only. Blocks are of about `blockFlops`.
  static GemmBlocking choose(const Target &target, int64_t m, int64_t n, int64_t k, const MatrixRef &left,
                             const MatrixRef &right, double blockFlops);
  /// The same for factors of 16 bits, which are packed; `result` is the element type of c.
  static GemmBlocking chooseHalves(const Target &target, int64_t m, int64_t n, int64_t k, const MatrixRef &left,
                                   const MatrixRef &right, double blockFlops, mlir::Type factors, mlir::Type result);
  /// One block with a and b read in place; b is not turned.
  static GemmBlocking whole(const Target &target, int64_t m, int64_t n, int64_t k, const MatrixRef &left,
                            const MatrixRef &right);
  int64_t numBlocks() const { return rowBlocks * columnBlocks; }

private:
  /// Panels of 32 rows, or 16, instead of those for vectors.
  void cutIntoTiles();
};

/// Emits one block: `result`, whose columnStride is 1, is overwritten or added to.
void emitGemmBlock(KernelBuilder &kernel, const GemmBlocking &blocking, const MatrixRef &left, const MatrixRef &right,
                   const MatrixRef &result, Value rowBlock, Value columnBlock);

/// The transposed square of as many full vectors as they have lanes, by shuffles.
llvm::SmallVector<Value> transposeSquare(KernelBuilder &kernel, llvm::ArrayRef<Value> rows);

} // namespace dg::codegen
