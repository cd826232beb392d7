// SPDX-License-Identifier: Apache-2.0
// Sums, products and extremes over dimensions. Each element of the result is folded by one tile in a fixed order.
#include "codegen/emit/ElementArithmetic.h"
#include "codegen/emit/LoopNest.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/reduction/ReductionOps.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace dg::codegen {

namespace {
/// How elements of one type become one.
struct Folding {
  enum class Kind { sum, product, smallest, largest } kind;
  Type type;

  double identity() const {
    switch (kind) {
    case Kind::sum:
      return 0;
    case Kind::product:
      return 1;
    case Kind::smallest:
      return ir::largestElement(type);
    case Kind::largest:
      return ir::smallestElement(type);
    }
    return 0;
  }
  Value combine(KernelBuilder &k, Value a, Value b) const {
    switch (kind) {
    case Kind::sum:
      return addElements(k, a, b);
    case Kind::product:
      return mulElements(k, a, b);
    case Kind::smallest:
      return minElements(k, type, a, b);
    case Kind::largest:
      return maxElements(k, type, a, b);
    }
    return a;
  }
  bool isSumOfReals() const { return kind == Kind::sum && isa<FloatType>(type); }

  /// The identity as a vector of `width` elements, or as one element.
  Value start(KernelBuilder &k, int64_t width) const {
    return elementConstant(k, type, identity(), k.splat(0.0, width));
  }
  Value startScalar(KernelBuilder &k) const { return elementConstant(k, type, identity(), k.number(0)); }

  /// All lanes as one element: halves are folded onto each other.
  Value foldLanes(KernelBuilder &k, Value vector, int64_t width) const {
    for (int64_t half = width / 2; half > 0; half /= 2) {
      SmallVector<int64_t> upper;
      for (int64_t lane = 0; lane < width; ++lane)
        upper.push_back((lane + half) % width);
      vector = combine(k, vector, k.create<vector::ShuffleOp>(vector, vector, upper));
    }
    return k.create<vector::ExtractOp>(vector, int64_t(0));
  }

  /// `count` elements of the buffer, side by side from `from` on, as one.
  Value foldRow(KernelBuilder &k, Value buffer, Value from, int64_t count) const {
    if (isSumOfReals())
      return k.fold(KernelBuilder::Fold::sum, count,
                    [&](Value at, Lanes lanes) { return k.load(buffer, k.add(from, at), lanes); });
    int64_t rest = count % k.lanes, full = count - rest;
    int64_t width = full ? k.lanes : int64_t(llvm::bit_ceil(uint64_t(rest)));
    KernelBuilder::Values folded(1, start(k, width));
    if (full)
      folded = k.loop(k.index(0), k.index(full), k.lanes, folded,
                      [&](Value at, ValueRange carried) -> KernelBuilder::Values {
                        return {combine(k, carried[0], k.load(buffer, k.add(from, at), {width, width}))};
                      });
    if (rest) {
      Lanes lanes = {width, rest};
      Value last = k.load(buffer, k.add(from, full), lanes);
      if (lanes.isMasked())
        last = k.select(k.laneMask(lanes), last, start(k, width));
      folded[0] = combine(k, folded[0], last);
    }
    return foldLanes(k, folded[0], width);
  }
};

/// The dimensions of one kind (kept or folded) of a loop nest: their sizes and the strides of input and output.
struct Dimensions {
  SmallVector<int64_t> sizes, input, output;
  int64_t count() const {
    int64_t product = 1;
    for (int64_t size : sizes)
      product *= size;
    return product;
  }
};

/// The last dimension is folded: each result is a fold of rows.
void emitFoldOfRows(KernelBuilder &k, const Folding &folding, const Dimensions &kept, const Dimensions &folded,
                    int64_t columns) {
  int64_t perResult = folded.count() * columns;
  loopWholeRowsOfTile(k, kept.count(), std::max<int64_t>(1, elementsPerTile / perResult), [&](Value position) {
    Value base = offsetOf(k, position, kept.sizes, kept.input), result;
    auto foldRow = [&](Value from) { return folding.foldRow(k, k.buffer(0), from, columns); };
    if (folded.sizes.empty())
      result = foldRow(base);
    else
      result = k.loop(k.index(0), k.index(folded.count()), 1, folding.startScalar(k),
                      [&](Value row, ValueRange carried) -> KernelBuilder::Values {
                        Value from = k.add(base, offsetOf(k, row, folded.sizes, folded.input));
                        return {folding.combine(k, carried[0], foldRow(from))};
                      })[0];
    k.storeScalar(result, k.buffer(1), offsetOf(k, position, kept.sizes, kept.output));
  });
}

/// The last dimension is kept: columns of vectors are folded side by side.
void emitFoldOfColumns(KernelBuilder &k, const Folding &folding, const Dimensions &kept, const Dimensions &folded,
                       int64_t columns) {
  int64_t tileElements = std::max<int64_t>(4 * k.lanes, elementsPerTile / folded.count());
  loopRowsOfTile(k, kept.count(), columns, tileElements, [&](Value position, Value from, Value to) {
    Value base = offsetOf(k, position, kept.sizes, kept.input), result = offsetOf(k, position, kept.sizes, kept.output);
    auto foldColumns = [&](Value column, int64_t vectors, Lanes lanes) {
      KernelBuilder::Values sums(vectors, folding.start(k, lanes.width));
      sums = k.loop(k.index(0), k.index(folded.count()), 1, sums, [&](Value row, ValueRange carried) {
        Value at = k.add(k.add(base, offsetOf(k, row, folded.sizes, folded.input)), column);
        KernelBuilder::Values next;
        for (int64_t i = 0; i < vectors; ++i)
          next.push_back(folding.combine(k, carried[i], k.load(k.buffer(0), k.add(at, i * k.lanes), lanes)));
        return next;
      });
      for (int64_t i = 0; i < vectors; ++i)
        k.store(sums[i], k.buffer(1), k.add(k.add(result, column), i * k.lanes), lanes);
    };
    // Four vectors at a time, as far as they go; every column is folded in the same order either way.
    Value rest = from;
    if (columns >= 4 * k.lanes) {
      Value span = k.mul(k.div(k.sub(to, from), 4 * k.lanes), 4 * k.lanes);
      rest = k.add(from, span);
      k.loop(from, rest, 4 * k.lanes, [&](Value column) { foldColumns(column, 4, {k.lanes, k.lanes}); });
    }
    k.loopVectors(rest, to, columns, [&](Value column, Lanes lanes) { foldColumns(column, 1, lanes); });
  });
}

/// Of nothing.
void emitIdentity(KernelBuilder &k, const Folding &folding, int64_t count) {
  loopRowsOfTile(k, 1, count, elementsPerTile, [&](Value, Value from, Value to) {
    k.loopVectors(from, to, count,
                  [&](Value at, Lanes lanes) { k.store(folding.start(k, lanes.width), k.buffer(1), at, lanes); });
  });
}

template <typename Op, Folding::Kind kind> void emitReduction(KernelBuilder &k, Op reduce) {
  ArrayRef<int64_t> shape = shapeOf(reduce.getInput());
  Folding folding{kind, cast<RankedTensorType>(reduce.getInput().getType()).getElementType()};
  if (numElements(reduce.getInput()) == 0)
    return emitIdentity(k, folding, numElements(reduce.getResult()));
  SmallVector<int64_t> keptShape(shape);
  for (int64_t dim : reduce.getDims())
    keptShape[dim] = 1;
  SmallVector<int64_t> outputStrides = rowMajorStrides(keptShape);
  for (auto [stride, size] : llvm::zip_equal(outputStrides, keptShape))
    if (size == 1)
      stride = 0;
  LoopNest nest = LoopNest::collapse(shape, {rowMajorStrides(shape), outputStrides});
  Dimensions kept, folded;
  for (unsigned dim = 0; dim + 1 < nest.sizes.size(); ++dim) {
    Dimensions &side = nest.strides[1][dim] ? kept : folded;
    side.sizes.push_back(nest.sizes[dim]);
    side.input.push_back(nest.strides[0][dim]);
    side.output.push_back(nest.strides[1][dim]);
  }
  if (nest.columnStride(1) == 0)
    emitFoldOfRows(k, folding, kept, folded, nest.columns());
  else
    emitFoldOfColumns(k, folding, kept, folded, nest.columns());
}
} // namespace

void addReduceKernels(KernelTable &table) {
  using Kind = Folding::Kind;
  table.add(emitReduction<ir::ReduceSumOp, Kind::sum>);
  table.add(emitReduction<ir::ReduceProdOp, Kind::product>);
  table.add(emitReduction<ir::ReduceMinOp, Kind::smallest>);
  table.add(emitReduction<ir::ReduceMaxOp, Kind::largest>);
}

} // namespace dg::codegen
