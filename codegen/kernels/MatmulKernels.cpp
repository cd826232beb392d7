// SPDX-License-Identifier: Apache-2.0
// Matrix products and batches of them: the grid runs over batches and over blocks of each product.
#include "codegen/emit/ElementArithmetic.h"
#include "codegen/emit/Gemm.h"
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/PanelProduct.h"
#include "codegen/emit/RowCopy.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/product/BlockedOps.h"
#include "ir/ops/product/ContractionOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::codegen {

namespace {
/// Of integers, or over nothing: each element by itself. Integer products are rare, and LLVM vectorises the columns.
void emitPlainMatmul(KernelBuilder &k, ir::MatmulOp matmul, int64_t depth) {
  ArrayRef<int64_t> shape = shapeOf(matmul.getResult());
  int64_t m = shape[shape.size() - 2], n = shape.back();
  int64_t lhsRow = matmul.getTransposeLhs() ? 1 : depth, lhsColumn = matmul.getTransposeLhs() ? m : 1;
  int64_t rhsRow = matmul.getTransposeRhs() ? 1 : n, rhsColumn = matmul.getTransposeRhs() ? depth : 1;
  Type type = cast<RankedTensorType>(matmul.getResult().getType()).getElementType();
  forEachElement(k, {numElements(matmul.getResult()) / (m * n), m, n}, [&](Value place, ArrayRef<Value> index) {
    Value left = k.add(k.mul(index[0], m * depth), k.mul(index[1], lhsRow));
    Value right = k.add(k.mul(index[0], depth * n), k.mul(index[2], rhsColumn));
    Value zero = elementConstant(k, type, 0, k.number(0));
    Value sum = k.loop(k.index(0), k.index(depth), 1, ValueRange{zero},
                       [&](Value i, ValueRange carried) -> KernelBuilder::Values {
                         Value a = k.loadScalar(k.buffer(0), k.add(left, k.mul(i, lhsColumn)));
                         Value b = k.loadScalar(k.buffer(1), k.add(right, k.mul(i, rhsRow)));
                         return {addElements(k, carried[0], mulElements(k, a, b))};
                       })[0];
    k.storeScalar(sum, k.buffer(2), place);
  });
}

LogicalResult emitMatmul(KernelBuilder &k, ir::MatmulOp matmul) {
  if (!matmul.isPrimitive())
    return matmul.emitOpError("multiplies different batches, or vectors: run --dg-decompose first");
  ArrayRef<int64_t> left = shapeOf(matmul.getLhs()), result = shapeOf(matmul.getResult());
  int64_t m = result[result.size() - 2], n = result.back();
  int64_t depth = matmul.getTransposeLhs() ? left[left.size() - 2] : left.back();
  int64_t batch = numElements(matmul.getResult()) / (m * n);
  if (depth == 0 || isa<IntegerType>(cast<RankedTensorType>(matmul.getResult().getType()).getElementType()))
    return emitPlainMatmul(k, matmul, depth), success();

  MatrixRef a = {k.buffer(0), {}, depth, 1}, b = {k.buffer(1), {}, n, 1}, c = {k.buffer(2), {}, n, 1};
  if (matmul.getTransposeLhs())
    a.rowStride = 1, a.columnStride = m;
  if (matmul.getTransposeRhs())
    b.rowStride = 1, b.columnStride = depth;
  // A vector is stored as a matrix of one row or one column: both strides may be called 1.
  if (m == 1)
    a.rowStride = depth, a.columnStride = 1;
  if (n == 1)
    b.rowStride = 1, b.columnStride = 1;

  // About 32 tiles, of 20 to 160 µs at 100 GFLOP/s.
  double flops = 2.0 * double(m) * double(n) * double(depth);
  double blockFlops = std::clamp(flops * double(batch) / 32, 2e6, 16e6);
  Type factors = matmul.getFactorType(),
       element = cast<RankedTensorType>(matmul.getResult().getType()).getElementType();
  GemmBlocking blocking = ir::isHalf(factors)
                              ? GemmBlocking::chooseHalves(k.target, m, n, depth, a, b, blockFlops, factors, element)
                              : GemmBlocking::choose(k.target, m, n, depth, a, b, blockFlops);
  int64_t perTile = blocking.numBlocks() > 1 ? 1 : std::max<int64_t>(1, int64_t(blockFlops / flops));
  bool isByRows = matmul.getTransposeLhs();
  loopWholeRowsOfTile(k, batch * blocking.numBlocks(), perTile, [&](Value position) {
    Value item = k.div(position, blocking.numBlocks()), block = k.mod(position, blocking.numBlocks());
    a.offset = k.mul(item, m * depth);
    b.offset = k.mul(item, depth * n);
    c.offset = k.mul(item, m * n);
    // Gradients of weights row after row, as the optimizer then reads them; other products column after column.
    Value row = isByRows ? k.div(block, blocking.columnBlocks) : k.mod(block, blocking.rowBlocks);
    Value column = isByRows ? k.mod(block, blocking.columnBlocks) : k.div(block, blocking.rowBlocks);
    emitGemmBlock(k, blocking, a, b, c, row, column);
  });
  return success();
}

/// Some rows at a time; columns that pad the last panel are computed and not stored.
void emitPanels(KernelBuilder &k, ir::PanelProductOp op) {
  int64_t rows = shapeOf(op.getInput())[0], depth = shapeOf(op.getInput())[1], columns = int64_t(op.getColumns()),
          panels = shapeOf(op.getPanels())[0], padded = panels * ir::PanelProductOp::panelColumns;
  int64_t perTile = std::clamp<int64_t>((512 << 10) / (padded * k.target.realBytes), 1, std::min<int64_t>(rows, 16));
  Value sums = k.stack(perTile * padded);
  auto emit = [&](int64_t count) {
    Value first = k.mul(k.tile(), perTile);
    emitPanelProduct(k, count, depth, panels, {k.buffer(0), k.mul(first, depth), depth, 1}, k.buffer(1),
                     {sums, k.index(0), padded, 1});
    k.loop(0, count, 1, [&](Value row) {
      copyRow(k, sums, k.mul(row, padded), k.buffer(2), k.mul(k.add(first, row), columns), columns);
    });
    return KernelBuilder::Values();
  };
  int64_t tiles = llvm::divideCeil(rows, perTile), rest = rows - (tiles - 1) * perTile;
  k.setTiles(tiles);
  if (rest == perTile)
    emit(perTile);
  else
    k.ifElse(k.isEqual(k.tile(), k.index(tiles - 1)), {}, [&] { return emit(rest); }, [&] { return emit(perTile); });
}
} // namespace

void addMatmulKernels(KernelTable &table) {
  table.add(emitMatmul);
  table.add(emitPanels);
}

} // namespace dg::codegen
