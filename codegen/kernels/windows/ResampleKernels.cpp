// SPDX-License-Identifier: Apache-2.0
// Sparse matrices of constants along one dimension. The matrix lies beside the code; a row of the result is a sum of
// few rows of the input, in the order of the matrix.
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/RowCopy.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/arrangement/ResampleOps.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace dg::codegen {

namespace {
/// A buffer of constants beside the kernel's code.
Value constantBuffer(KernelBuilder &k, StringRef name, DenseElementsAttr elements) {
  auto function = k.getInsertionBlock()->getParentOp()->getParentOfType<func::FuncOp>();
  if (!function)
    function = cast<func::FuncOp>(k.getInsertionBlock()->getParentOp());
  auto type = MemRefType::get(elements.getType().getShape(), elements.getElementType());
  std::string symbol = (function.getName() + "." + name).str();
  OpBuilder outside(function);
  outside.create<memref::GlobalOp>(function.getLoc(), symbol, outside.getStringAttr("private"), type, elements,
                                   /*constant=*/true, /*alignment=*/IntegerAttr());
  return k.create<memref::GetGlobalOp>(type, symbol);
}

Value constantIndices(KernelBuilder &k, StringRef name, ArrayRef<int64_t> numbers) {
  auto type = RankedTensorType::get({int64_t(numbers.size())}, k.getI64Type());
  return constantBuffer(k, name, DenseElementsAttr::get(type, numbers));
}

/// Each row of the result is one of the input, or zeros.
void emitCopies(KernelBuilder &k, ir::ResampleOp op, int64_t outer, int64_t size, int64_t inner) {
  ArrayRef<int64_t> offsets = op.getOffsets();
  int64_t newSize = int64_t(offsets.size()) - 1;
  SmallVector<int64_t> places;
  for (int64_t row = 0; row < newSize; ++row)
    places.push_back(offsets[row] == offsets[row + 1] ? -1 : op.getPlaces()[offsets[row]]);
  bool hasZeros = llvm::is_contained(places, -1);
  Value table = constantIndices(k, "places", places), zero = numberFor(k, k.buffer(1), 0);
  loopRowsOfTile(k, outer * newSize, inner, elementsPerTile, [&](Value row, Value from, Value to) {
    Value place = k.loadIndex(table, k.mod(row, newSize)), target = k.mul(row, inner);
    auto copy = [&] {
      Value source = k.mul(k.add(k.mul(k.div(row, newSize), size), place), inner);
      copyRow(k, k.buffer(0), source, k.buffer(1), target, from, to, inner);
      return KernelBuilder::Values();
    };
    if (!hasZeros) {
      copy();
      return;
    }
    k.ifElse(
        k.isLess(place, k.index(0)), {},
        [&] {
          k.loopVectors(from, to, inner, [&](Value at, Lanes lanes) {
            k.store(k.splat(zero, lanes.width), k.buffer(1), k.add(target, at), lanes);
          });
          return KernelBuilder::Values();
        },
        copy);
  });
}

void emitResample(KernelBuilder &k, ir::ResampleOp resample) {
  ArrayRef<int64_t> shape = shapeOf(resample.getInput());
  int64_t dim = resample.getDim(), size = shape[dim], inner = rowMajorStrides(shape)[dim],
          newSize = int64_t(resample.getOffsets().size()) - 1,
          outer = numElements(resample.getResult()) / (newSize * inner);
  bool isCopy = llvm::all_of(resample.getWeights(), [](double weight) { return weight == 1; });
  for (int64_t row = 0; row < newSize; ++row)
    isCopy &= resample.getOffsets()[row + 1] - resample.getOffsets()[row] <= 1;
  if (isCopy) {
    emitCopies(k, resample, outer, size, inner);
    return;
  }
  SmallVector<Attribute> numbers;
  for (double weight : resample.getWeights())
    numbers.push_back(k.getFloatAttr(k.real, weight));
  auto weightsType = RankedTensorType::get({int64_t(numbers.size())}, k.real);
  Value weights = constantBuffer(k, "weights", DenseElementsAttr::get(weightsType, numbers));
  Value places = constantIndices(k, "places", resample.getPlaces()),
        offsets = constantIndices(k, "offsets", resample.getOffsets());
  // Sums of one row, for one vector of columns.
  auto sum = [&](Value first, Value last, Value source, Value at, Lanes lanes) {
    Value zero = k.splat(0.0, lanes.width);
    return k.loop(first, last, 1, ValueRange(zero), [&](Value tap, ValueRange carried) {
      Value weight = k.splat(k.loadScalar(weights, tap), lanes.width);
      Value x = k.load(k.buffer(0), k.add(k.add(source, k.mul(k.loadIndex(places, tap), inner)), at), lanes);
      return KernelBuilder::Values{k.fma(weight, x, carried[0])};
    })[0];
  };
  loopRowsOfTile(k, outer * newSize, inner, elementsPerTile / 2, [&](Value row, Value from, Value to) {
    Value at = k.mod(row, newSize), source = k.mul(k.div(row, newSize), size * inner), target = k.mul(row, inner);
    Value first = k.loadIndex(offsets, at), last = k.loadIndex(offsets, k.add(at, 1));
    k.loopVectors(from, to, inner, [&](Value column, Lanes lanes) {
      k.store(sum(first, last, source, column, lanes), k.buffer(1), k.add(target, column), lanes);
    });
  });
}
} // namespace

void addResampleKernels(KernelTable &table) { table.add(emitResample); }

} // namespace dg::codegen
