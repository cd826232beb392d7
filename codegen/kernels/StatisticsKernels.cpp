// SPDX-License-Identifier: Apache-2.0
// Sums of an expression of several tensors, which broadcast to one another, over some dimensions: one pass gives all
// sums that share the reads. Each sum is made by one tile in a fixed order.
#include "codegen/emit/LoopNest.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/reduction/StatisticsOps.h"

#include "llvm/ADT/bit.h"

using namespace mlir;

namespace dg::codegen {

namespace {
using Values = KernelBuilder::Values;
/// The summands of all results at the same places, from the elements of the operands.
using Summands = llvm::function_ref<Values(ValueRange)>;

/// Operands are the first buffers and broadcast to `shape`; results follow, with 1 where they are summed.
class SumEmitter {
public:
  SumEmitter(KernelBuilder &k, Operation *op, ArrayRef<int64_t> shape, double factor, Summands summands)
      : k(k), numOperands(op->getNumOperands()), numResults(op->getNumResults()), factor(factor), summands(summands) {
    SmallVector<SmallVector<int64_t>> strides;
    for (Value operand : op->getOperands())
      strides.push_back(broadcastStrides(shapeOf(operand), shape));
    strides.push_back(broadcastStrides(shapeOf(op->getResult(0)), shape));
    nest = LoopNest::collapse(shape, strides);
    for (unsigned dim = 0; dim + 1 < nest.sizes.size(); ++dim)
      (nest.strides.back()[dim] ? kept : summed).push_back(dim);
  }

  void emit() {
    if (nest.strides.back().back() == 0)
      emitRows();
    else
      emitColumns();
  }

private:
  int64_t count(ArrayRef<unsigned> dims) const {
    int64_t product = 1;
    for (unsigned dim : dims)
      product *= nest.sizes[dim];
    return product;
  }
  Value offset(Value position, ArrayRef<unsigned> dims, unsigned tensor) {
    SmallVector<int64_t> sizes, strides;
    for (unsigned dim : dims) {
      sizes.push_back(nest.sizes[dim]);
      strides.push_back(nest.strides[tensor][dim]);
    }
    return dims.empty() ? k.index(0) : offsetOf(k, position, sizes, strides);
  }
  Values elements(ArrayRef<Value> starts, Value column, Lanes lanes) {
    Values loaded;
    for (unsigned i = 0; i < numOperands; ++i)
      loaded.push_back(nest.columnStride(i) == 0 ? k.loadSplat(k.buffer(i), starts[i], lanes)
                                                 : k.load(k.buffer(i), k.add(starts[i], column), lanes));
    return loaded;
  }
  SmallVector<Value> starts(Value position, Value row) {
    SmallVector<Value> all;
    for (unsigned i = 0; i < numOperands; ++i)
      all.push_back(k.add(offset(position, kept, i), offset(row, summed, i)));
    return all;
  }

  /// The last dimension is summed. Rows are added up in double, so that long sums keep their digits.
  void emitRows() {
    int64_t columns = nest.columns(), perResult = count(summed) * columns;
    Type f64 = k.getF64Type();
    Value zero = k.create<arith::ConstantOp>(k.getFloatAttr(f64, 0));
    loopWholeRowsOfTile(k, count(kept), std::max<int64_t>(1, elementsPerTile / perResult), [&](Value position) {
      Values sums(numResults, zero);
      sums = k.loop(k.index(0), k.index(count(summed)), 1, sums, [&](Value row, ValueRange carried) {
        Values next;
        for (auto [total, part] : llvm::zip_equal(carried, sumOfRow(starts(position, row), columns)))
          next.push_back(k.create<arith::AddFOp>(total, k.toDouble(part)));
        return next;
      });
      Value scale = k.create<arith::ConstantOp>(k.getFloatAttr(f64, factor));
      for (unsigned i = 0; i < numResults; ++i) {
        Value scaled = k.create<arith::MulFOp>(sums[i], scale);
        k.storeScalar(k.fromDouble(scaled), k.buffer(numOperands + i), offset(position, kept, numOperands));
      }
    });
  }

  Values sumOfRow(ArrayRef<Value> from, int64_t columns) {
    int64_t rest = columns % k.lanes, full = columns - rest;
    Lanes tail = {full ? k.lanes : int64_t(llvm::bit_ceil(uint64_t(rest))), rest};
    Values sums(numResults, k.splat(0.0, full ? k.lanes : tail.width));
    auto added = [&](ValueRange before, Value column, Lanes lanes) {
      Values next;
      for (auto [sum, summand] : llvm::zip_equal(before, summands(elements(from, column, lanes))))
        next.push_back(k.fadd(sum, k.mask(summand, lanes, 0)));
      return next;
    };
    if (full)
      sums = k.loop(k.index(0), k.index(full), k.lanes, sums,
                    [&](Value column, ValueRange carried) { return added(carried, column, {k.lanes, k.lanes}); });
    if (rest)
      sums = added(sums, k.index(full), tail);
    for (Value &sum : sums)
      sum = k.sumLanes(sum);
    return sums;
  }

  /// The last dimension is kept: columns of vectors are summed side by side.
  void emitColumns() {
    int64_t columns = nest.columns(), rows = count(summed);
    int64_t tileElements = std::max<int64_t>(4 * k.lanes, elementsPerTile / rows);
    loopRowsOfTile(k, count(kept), columns, tileElements, [&](Value position, Value first, Value end) {
      k.loopVectors(first, end, columns, [&](Value column, Lanes lanes) {
        Values sums(numResults, k.splat(0.0, lanes.width));
        sums = k.loop(k.index(0), k.index(rows), 1, sums, [&](Value row, ValueRange carried) {
          Values next;
          for (auto [sum, summand] : llvm::zip_equal(carried, summands(elements(starts(position, row), column, lanes))))
            next.push_back(k.fadd(sum, summand));
          return next;
        });
        Value to = k.add(offset(position, kept, numOperands), column);
        for (unsigned i = 0; i < numResults; ++i)
          k.store(k.scale(sums[i], factor), k.buffer(numOperands + i), to, lanes);
      });
    });
  }

  KernelBuilder &k;
  unsigned numOperands, numResults;
  double factor;
  Summands summands;
  LoopNest nest; ///< strides of the operands, then of the results
  SmallVector<unsigned> kept, summed;
};

void emitMoments(KernelBuilder &k, ir::MomentsOp moments) {
  SumEmitter(k, moments, shapeOf(moments.getInput()), moments.getScale().convertToDouble(),
             [&](ValueRange v) -> Values {
               Value distance = k.fsub(v[0], v[2]), weighted = k.fmul(v[1], distance);
               return {weighted, k.fmul(weighted, distance)};
             })
      .emit();
}

void emitNormalizeSums(KernelBuilder &k, ir::NormalizeSumsOp sums) {
  SumEmitter(k, sums, shapeOf(sums.getInput()), 1, [&](ValueRange v) -> Values {
    return {v[0], k.fmul(v[0], k.fsub(v[1], v[2]))};
  }).emit();
}
} // namespace

void addStatisticsKernels(KernelTable &table) {
  table.add(emitMoments);
  table.add(emitNormalizeSums);
}

} // namespace dg::codegen
