// SPDX-License-Identifier: Apache-2.0
// Reads and writes at places given by integers, in ONNX's forms. A negative place counts from the end; one outside is
// reported (see Places.h). Writes that may meet are made by one tile, in row-major order of the
// updates.
#include "codegen/emit/ElementArithmetic.h"
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/Places.h"
#include "codegen/emit/RowCopy.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/arrangement/GatherOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::codegen {

namespace {
int64_t productOf(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

/// What is stored where an update meets what is there.
Value combine(KernelBuilder &k, StringRef reduction, Type element, Value present, Value update) {
  if (reduction == "add")
    return addElements(k, present, update);
  if (reduction == "mul")
    return mulElements(k, present, update);
  if (reduction == "min")
    return minElements(k, element, present, update);
  if (reduction == "max")
    return maxElements(k, element, present, update);
  return update;
}

/// Columns [from, to) of `columns` for each tile, where the rows of a tensor cannot be dealt out: at most 8 tiles, as
/// each of them walks through all indices.
std::pair<Value, Value> columnsOfTile(KernelBuilder &k, int64_t columns, int64_t elements) {
  int64_t most = std::clamp<int64_t>(elements / elementsPerTile, 1, 8);
  int64_t perTile = llvm::alignTo(llvm::divideCeil(columns, most), 16);
  k.setTiles(llvm::divideCeil(columns, perTile));
  Value from = k.mul(k.tile(), perTile);
  return {from, k.min(k.add(from, perTile), k.index(columns))};
}

void emitGather(KernelBuilder &k, ir::GatherOp gather) {
  ArrayRef<int64_t> shape = shapeOf(gather.getInput());
  int64_t dim = gather.getDim(), size = shape[dim], inner = productOf(shape.drop_front(dim + 1)),
          outer = productOf(shape.take_front(dim)), count = numElements(gather.getIndices());
  loopRowsOfTile(k, outer * count, inner, elementsPerTile, [&](Value row, Value from, Value to) {
    Value place = loadPlace(k, k.buffer(1), k.mod(row, count), size, true);
    Value source = k.mul(k.add(k.mul(k.div(row, count), size), place), inner);
    copyRow(k, k.buffer(0), source, k.buffer(2), k.mul(row, inner), from, to, inner);
  });
}

void emitGatherGrad(KernelBuilder &k, ir::GatherGradOp gather) {
  ArrayRef<int64_t> shape = shapeOf(gather.getResult());
  int64_t dim = gather.getDim(), size = gather.getSize(), inner = productOf(shape.drop_front(dim + 1)),
          outer = productOf(shape.take_front(dim)), count = numElements(gather.getIndices());
  Value zero = numberFor(k, k.buffer(2), 0);
  auto addSlices = [&](Value block, Value from, Value to) {
    k.loop(0, size, 1, [&](Value row) {
      Value start = k.mul(k.add(k.mul(block, size), row), inner);
      k.loopVectors(from, to, inner, [&](Value at, Lanes lanes) {
        k.store(k.splat(zero, lanes.width), k.buffer(2), k.add(start, at), lanes);
      });
    });
    k.loop(0, count, 1, [&](Value i) {
      Value source = k.mul(k.add(k.mul(block, count), i), inner);
      Value target = k.mul(k.add(k.mul(block, size), loadPlace(k, k.buffer(1), i, size, true)), inner);
      k.loopVectors(from, to, inner, [&](Value at, Lanes lanes) {
        Value place = k.add(target, at);
        k.store(k.fadd(k.load(k.buffer(2), place, lanes), k.load(k.buffer(0), k.add(source, at), lanes)), k.buffer(2),
                place, lanes);
      });
    });
  };
  if (outer > 1) {
    loopWholeRowsOfTile(k, outer, std::max<int64_t>(1, elementsPerTile / ((size + count) * inner)),
                        [&](Value block) { addSlices(block, k.index(0), k.index(inner)); });
  } else {
    auto [from, to] = columnsOfTile(k, inner, (size + count) * inner);
    addSlices(k.index(0), from, to);
  }
}

/// Where an element at `position` of the indices lies in the input, but for its index along `dim`.
Value placeOfOthers(KernelBuilder &k, Value position, ArrayRef<int64_t> indexShape, ArrayRef<int64_t> inputShape,
                    int64_t dim) {
  SmallVector<int64_t> strides = rowMajorStrides(inputShape);
  strides[dim] = 0;
  return offsetOf(k, position, indexShape, strides);
}

void emitGatherElements(KernelBuilder &k, ir::GatherElementsOp gather) {
  ArrayRef<int64_t> shape = shapeOf(gather.getInput()), places = shapeOf(gather.getIndices());
  int64_t dim = gather.getDim(), stride = rowMajorStrides(shape)[dim];
  loopRowsOfTile(k, 1, numElements(gather.getIndices()), elementsPerTile / 4, [&](Value, Value from, Value to) {
    k.loop(from, to, 1, [&](Value at) {
      Value source = k.add(placeOfOthers(k, at, places, shape, dim),
                           k.mul(loadPlace(k, k.buffer(1), at, shape[dim], true), stride));
      k.storeScalar(k.loadScalar(k.buffer(0), source), k.buffer(2), at);
    });
  });
}

/// Updates with different first indices never meet, unless they are dealt out along dimension 0 itself.
void emitScatterElements(KernelBuilder &k, ir::ScatterElementsOp scatter) {
  ArrayRef<int64_t> shape = shapeOf(scatter.getInput()), places = shapeOf(scatter.getIndices());
  int64_t dim = scatter.getDim(), stride = rowMajorStrides(shape)[dim];
  Type element = k.elementOf(k.buffer(3));
  bool isWhole = dim == 0;
  int64_t blocks = isWhole ? 1 : shape[0], blockSize = numElements(scatter.getInput()) / blocks,
          updateBlocks = isWhole ? 1 : places[0],
          updatesPerBlock = numElements(scatter.getIndices()) / std::max<int64_t>(updateBlocks, 1);
  loopWholeRowsOfTile(
      k, blocks, std::max<int64_t>(1, elementsPerTile / (blockSize + updatesPerBlock)), [&](Value block) {
        Value start = k.mul(block, blockSize);
        copyRow(k, k.buffer(0), start, k.buffer(3), start, blockSize);
        if (updatesPerBlock == 0 || updateBlocks == 0)
          return;
        k.ifThen(k.isLess(block, k.index(updateBlocks)), [&] {
          Value first = k.mul(block, updatesPerBlock);
          k.loop(first, k.add(first, updatesPerBlock), 1, [&](Value at) {
            Value target = k.add(placeOfOthers(k, at, places, shape, dim),
                                 k.mul(loadPlace(k, k.buffer(1), at, shape[dim], true), stride));
            Value update = k.loadScalar(k.buffer(2), at), present = k.loadScalar(k.buffer(3), target);
            k.storeScalar(combine(k, scatter.getReduction(), element, present, update), k.buffer(3), target);
          });
        });
      });
}

/// The sizes of an op on rows of indices.
struct NdSizes {
  int64_t batch, rows;     ///< batches; rows of indices in each
  int64_t block, inner;    ///< elements of the input in each batch; of a slice
  int64_t depth;           ///< of a row
  ArrayRef<int64_t> named; ///< the sizes of the dimensions that a row names
};

NdSizes ndSizes(Value input, Value indices, int64_t batchDims) {
  ArrayRef<int64_t> shape = shapeOf(input), places = shapeOf(indices);
  int64_t depth = places.back(), batch = productOf(shape.take_front(batchDims));
  return {batch,
          productOf(places.drop_front(batchDims).drop_back()),
          productOf(shape.drop_front(batchDims)),
          productOf(shape.drop_front(batchDims + depth)),
          depth,
          shape.slice(batchDims, depth)};
}

/// Where the slice that row `row` of the indices names starts in its batch.
Value loadSliceStart(KernelBuilder &k, const NdSizes &sizes, Value row) {
  SmallVector<int64_t> strides = rowMajorStrides(sizes.named);
  Value start = k.index(0);
  for (int64_t i = 0; i < sizes.depth; ++i)
    start = k.add(start, k.mul(loadPlace(k, k.buffer(1), k.add(k.mul(row, sizes.depth), i), sizes.named[i], true),
                               strides[i] * sizes.inner));
  return start;
}

void emitGatherNd(KernelBuilder &k, ir::GatherNdOp gather) {
  NdSizes sizes = ndSizes(gather.getInput(), gather.getIndices(), gather.getBatchDims());
  loopRowsOfTile(k, sizes.batch * sizes.rows, sizes.inner, elementsPerTile, [&](Value row, Value from, Value to) {
    Value source = k.add(k.mul(k.div(row, sizes.rows), sizes.block), loadSliceStart(k, sizes, row));
    copyRow(k, k.buffer(0), source, k.buffer(2), k.mul(row, sizes.inner), from, to, sizes.inner);
  });
}

void emitScatterNd(KernelBuilder &k, ir::ScatterNdOp scatter) {
  NdSizes sizes = ndSizes(scatter.getInput(), scatter.getIndices(), scatter.getBatchDims());
  Type element = k.elementOf(k.buffer(3));
  auto writeSlices = [&](Value batch, Value from, Value to) {
    Value block = k.mul(batch, sizes.block);
    k.loop(0, sizes.block / sizes.inner, 1, [&](Value row) {
      Value start = k.add(block, k.mul(row, sizes.inner));
      copyRow(k, k.buffer(0), start, k.buffer(3), start, from, to, sizes.inner);
    });
    k.loop(0, sizes.rows, 1, [&](Value i) {
      Value row = k.add(k.mul(batch, sizes.rows), i);
      Value source = k.mul(row, sizes.inner), target = k.add(block, loadSliceStart(k, sizes, row));
      k.loopVectors(from, to, sizes.inner, [&](Value at, Lanes lanes) {
        Value place = k.add(target, at);
        Value update = k.load(k.buffer(2), k.add(source, at), lanes), present = k.load(k.buffer(3), place, lanes);
        k.store(combine(k, scatter.getReduction(), element, present, update), k.buffer(3), place, lanes);
      });
    });
  };
  int64_t elements = sizes.block + sizes.rows * sizes.inner;
  if (sizes.batch > 1) {
    loopWholeRowsOfTile(k, sizes.batch, std::max<int64_t>(1, elementsPerTile / elements),
                        [&](Value batch) { writeSlices(batch, k.index(0), k.index(sizes.inner)); });
  } else {
    auto [from, to] = columnsOfTile(k, sizes.inner, elements);
    writeSlices(k.index(0), from, to);
  }
}

void emitOneHot(KernelBuilder &k, ir::OneHotOp oneHot) {
  ArrayRef<int64_t> shape = shapeOf(oneHot.getResult());
  int64_t depth = oneHot.getDepth(), inner = productOf(shape.drop_front(oneHot.getDim() + 1)),
          outer = productOf(shape.take_front(oneHot.getDim()));
  Value one = numberFor(k, k.buffer(1), 1), zero = numberFor(k, k.buffer(1), 0);
  loopRowsOfTile(k, outer * depth, inner, elementsPerTile, [&](Value row, Value from, Value to) {
    Value place = k.mod(row, depth), first = k.mul(k.div(row, depth), inner), target = k.mul(row, inner);
    k.loop(from, to, 1, [&](Value at) {
      Value index = k.loadIndex(k.buffer(0), k.add(first, at));
      index = k.select(k.isLess(index, k.index(0)), k.add(index, depth), index);
      k.storeScalar(k.select(k.isEqual(index, place), one, zero), k.buffer(1), k.add(target, at));
    });
  });
}

void emitReverseSequence(KernelBuilder &k, ir::ReverseSequenceOp reverse) {
  ArrayRef<int64_t> shape = shapeOf(reverse.getInput());
  int64_t inner = productOf(shape.drop_front(2)), steps = shape[1 - reverse.getBatchDim()];
  bool isBatchFirst = reverse.getBatchDim() == 0;
  loopRowsOfTile(k, shape[0] * shape[1], inner, elementsPerTile, [&](Value row, Value from, Value to) {
    Value i = k.div(row, shape[1]), j = k.mod(row, shape[1]), time = isBatchFirst ? j : i;
    Value length = loadPlace(k, k.buffer(1), isBatchFirst ? i : j, steps + 1);
    Value source = k.select(k.isLess(time, length), k.sub(k.sub(length, k.index(1)), time), time);
    source = isBatchFirst ? k.add(k.mul(i, steps), source) : k.add(k.mul(source, shape[1]), j);
    copyRow(k, k.buffer(0), k.mul(source, inner), k.buffer(2), k.mul(row, inner), from, to, inner);
  });
}
} // namespace

void addGatherKernels(KernelTable &table) {
  table.add(emitGather);
  table.add(emitGatherGrad);
  table.add(emitGatherElements);
  table.add(emitScatterElements);
  table.add(emitGatherNd);
  table.add(emitScatterNd);
  table.add(emitOneHot);
  table.add(emitReverseSequence);
}

} // namespace dg::codegen
