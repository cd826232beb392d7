// SPDX-License-Identifier: Apache-2.0
// Transposition. Where the last dimension stays last it copies rows; else it turns square blocks in registers.
#include "codegen/emit/Gemm.h"
#include "codegen/emit/LoopNest.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/arrangement/ShapeOps.h"

using namespace mlir;

namespace dg::codegen {

namespace {
void emitTranspose(KernelBuilder &k, ir::TransposeOp transpose) {
  ArrayRef<int64_t> shape = shapeOf(transpose.getResult());
  SmallVector<int64_t> own = rowMajorStrides(shapeOf(transpose.getInput())), inputStrides;
  for (int64_t dim : transpose.getPermutation())
    inputStrides.push_back(own[dim]);
  LoopNest nest = LoopNest::collapse(shape, {inputStrides, rowMajorStrides(shape)});
  int64_t columns = nest.columns();
  if (nest.columnStride(0) == 1) {
    loopRowsOfTile(k, nest.rows(), columns, elementsPerTile, [&](Value row, Value from, Value to) {
      Value input = nest.rowOffset(k, 0, row), output = nest.rowOffset(k, 1, row);
      k.loopVectors(from, to, columns, [&](Value at, Lanes lanes) {
        k.store(k.load(k.buffer(0), k.add(input, at), lanes), k.buffer(1), k.add(output, at), lanes);
      });
    });
    return;
  }
  // The dimension that is last in the input, and all others but the result's last.
  size_t turned = llvm::find(nest.strides[0], 1) - nest.strides[0].begin();
  SmallVector<int64_t> sizes, inputs, outputs;
  int64_t others = 1;
  for (size_t dim = 0; dim + 1 < nest.sizes.size(); ++dim)
    if (dim != turned) {
      sizes.push_back(nest.sizes[dim]);
      inputs.push_back(nest.strides[0][dim]);
      outputs.push_back(nest.strides[1][dim]);
      others *= nest.sizes[dim];
    }
  int64_t rows = nest.sizes[turned], blocks = (rows + k.lanes - 1) / k.lanes;
  loopWholeRowsOfTile(
      k, others * blocks, std::max<int64_t>(1, elementsPerTile / (k.lanes * columns)), [&](Value position) {
        Value other = k.div(position, blocks), first = k.mul(k.mod(position, blocks), k.lanes);
        Value input = k.add(offsetOf(k, other, sizes, inputs), first);
        Value output = k.add(offsetOf(k, other, sizes, outputs), k.mul(first, nest.strides[1][turned]));
        auto turn = [&](int64_t numRows) {
          k.loopVectors(columns, [&](Value column, Lanes lanes) {
            Lanes part = {k.lanes, numRows};
            SmallVector<Value> vectors;
            for (int64_t i = 0; i < k.lanes; ++i)
              vectors.push_back(
                  i < lanes.active
                      ? k.load(k.buffer(0), k.add(input, k.mul(k.add(column, i), nest.columnStride(0))), part)
                      : k.splat(0.0, k.lanes));
            vectors = transposeSquare(k, vectors);
            for (int64_t i = 0; i < numRows; ++i)
              k.store(vectors[i], k.buffer(1), k.add(k.add(output, column), i * nest.strides[1][turned]),
                      {k.lanes, lanes.active});
          });
        };
        int64_t rest = rows % k.lanes;
        if (rest == 0)
          return turn(k.lanes);
        if (blocks == 1)
          return turn(rest);
        Value isLast = k.isEqual(first, k.index(rows - rest));
        k.ifElse(
            isLast, {},
            [&] {
              turn(rest);
              return KernelBuilder::Values();
            },
            [&] {
              turn(k.lanes);
              return KernelBuilder::Values();
            });
      });
}
} // namespace

void addShapeKernels(KernelTable &table) { table.add(emitTranspose); }

} // namespace dg::codegen
