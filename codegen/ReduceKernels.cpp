// SPDX-License-Identifier: Apache-2.0
// Sums over dimensions. Each element of the result is summed by one tile in a fixed order.
#include "codegen/KernelTable.h"
#include "codegen/LoopNest.h"
#include "ir/ShapeOps.h"

using namespace mlir;

namespace dg::codegen {

namespace {
/// The dimensions of one kind (kept or summed) of a loop nest: their sizes and the strides of input and output.
struct Dimensions {
  SmallVector<int64_t> sizes, input, output;
  int64_t count() const {
    int64_t product = 1;
    for (int64_t size : sizes)
      product *= size;
    return product;
  }
};

/// The last dimension is summed: each result is a fold of rows.
void emitSumOfRows(KernelBuilder &k, const Dimensions &kept, const Dimensions &summed, int64_t columns) {
  int64_t perResult = summed.count() * columns;
  loopWholeRowsOfTile(k, kept.count(), std::max<int64_t>(1, elementsPerTile / perResult), [&](Value position) {
    Value base = offsetOf(k, position, kept.sizes, kept.input);
    auto sumOfRow = [&](Value from) {
      return k.fold(KernelBuilder::Fold::sum, columns,
                    [&](Value at, Lanes lanes) { return k.load(k.buffer(0), k.add(from, at), lanes); });
    };
    Value sum;
    if (summed.sizes.empty())
      sum = sumOfRow(base);
    else
      sum = k.loop(k.index(0), k.index(summed.count()), 1, k.number(0),
                   [&](Value row, ValueRange carried) -> KernelBuilder::Values {
                     return {k.fadd(carried[0], sumOfRow(k.add(base, offsetOf(k, row, summed.sizes, summed.input))))};
                   })[0];
    k.storeScalar(sum, k.buffer(1), offsetOf(k, position, kept.sizes, kept.output));
  });
}

/// The last dimension is kept: columns of vectors are summed side by side.
void emitSumOfColumns(KernelBuilder &k, const Dimensions &kept, const Dimensions &summed, int64_t columns) {
  int64_t tileElements = std::max<int64_t>(4 * k.lanes, elementsPerTile / summed.count());
  loopRowsOfTile(k, kept.count(), columns, tileElements, [&](Value position, Value from, Value to) {
    Value base = offsetOf(k, position, kept.sizes, kept.input), result = offsetOf(k, position, kept.sizes, kept.output);
    auto sumColumns = [&](Value column, int64_t vectors, Lanes lanes) {
      KernelBuilder::Values sums(vectors, k.splat(0.0, lanes.width));
      sums = k.loop(k.index(0), k.index(summed.count()), 1, sums, [&](Value row, ValueRange carried) {
        Value at = k.add(k.add(base, offsetOf(k, row, summed.sizes, summed.input)), column);
        KernelBuilder::Values next;
        for (int64_t i = 0; i < vectors; ++i)
          next.push_back(k.fadd(carried[i], k.load(k.buffer(0), k.add(at, i * k.lanes), lanes)));
        return next;
      });
      for (int64_t i = 0; i < vectors; ++i)
        k.store(sums[i], k.buffer(1), k.add(k.add(result, column), i * k.lanes), lanes);
    };
    // Four vectors at a time, as far as they go; every column is summed in the same order either way.
    Value rest = from;
    if (columns >= 4 * k.lanes) {
      Value span = k.mul(k.div(k.sub(to, from), 4 * k.lanes), 4 * k.lanes);
      rest = k.add(from, span);
      k.loop(from, rest, 4 * k.lanes, [&](Value column) { sumColumns(column, 4, {k.lanes, k.lanes}); });
    }
    k.loopVectors(rest, to, columns, [&](Value column, Lanes lanes) { sumColumns(column, 1, lanes); });
  });
}

LogicalResult emitReduceSum(KernelBuilder &k, Operation *op) {
  auto reduce = cast<ir::ReduceSumOp>(op);
  ArrayRef<int64_t> shape = shapeOf(reduce.getInput());
  SmallVector<int64_t> keptShape(shape);
  for (int64_t dim : reduce.getDims())
    keptShape[dim < 0 ? dim + int64_t(shape.size()) : dim] = 1;
  SmallVector<int64_t> outputStrides = rowMajorStrides(keptShape);
  for (auto [stride, size] : llvm::zip_equal(outputStrides, keptShape))
    if (size == 1)
      stride = 0;
  LoopNest nest = LoopNest::collapse(shape, {rowMajorStrides(shape), outputStrides});
  Dimensions kept, summed;
  for (unsigned dim = 0; dim + 1 < nest.sizes.size(); ++dim) {
    Dimensions &kind = nest.strides[1][dim] ? kept : summed;
    kind.sizes.push_back(nest.sizes[dim]);
    kind.input.push_back(nest.strides[0][dim]);
    kind.output.push_back(nest.strides[1][dim]);
  }
  if (nest.columnStride(1) == 0)
    emitSumOfRows(k, kept, summed, nest.columns());
  else
    emitSumOfColumns(k, kept, summed, nest.columns());
  return success();
}
} // namespace

void addReduceKernels(KernelTable &table) { table["dg.reduce_sum"] = {emitReduceSum}; }

} // namespace dg::codegen
