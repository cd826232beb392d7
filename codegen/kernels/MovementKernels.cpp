// SPDX-License-Identifier: Apache-2.0
// Copies to other places. What lies side by side in both tensors is copied by rows; the rest element by element.
#include "codegen/emit/ElementArithmetic.h"
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/RowCopy.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/arrangement/MovementOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::codegen {

namespace {
void emitSlice(KernelBuilder &k, ir::SliceOp slice) {
  ArrayRef<int64_t> shape = shapeOf(slice.getResult());
  SmallVector<int64_t> strides = rowMajorStrides(shapeOf(slice.getInput()));
  int64_t first = 0;
  for (size_t dim = 0; dim < strides.size(); ++dim) {
    first += slice.getStarts()[dim] * strides[dim];
    strides[dim] *= slice.getSteps() ? (*slice.getSteps())[dim] : 1;
  }
  LoopNest nest = LoopNest::collapse(shape, {strides, rowMajorStrides(shape)});
  int64_t step = nest.columnStride(0);
  loopRowsOfTile(k, nest.rows(), nest.columns(), elementsPerTile, [&](Value row, Value from, Value to) {
    Value input = k.add(nest.rowOffset(k, 0, row), first), output = nest.rowOffset(k, 1, row);
    if (step == 1 || nest.columns() == 1)
      return copyRow(k, k.buffer(0), input, k.buffer(1), output, from, to, nest.columns());
    k.loop(from, to, 1, [&](Value at) {
      k.storeScalar(k.loadScalar(k.buffer(0), k.add(input, k.mul(at, step))), k.buffer(1), k.add(output, at));
    });
  });
}

/// Whether index `at` of a padded dimension holds an element of the input; `source` is its place there.
Value isInside(KernelBuilder &k, Value at, int64_t size, int64_t low, int64_t between, Value &source) {
  Value distance = k.sub(at, k.index(low));
  source = k.max(distance, k.index(0));
  Value isAfter = k.create<arith::CmpIOp>(arith::CmpIPredicate::sge, distance, k.index(0));
  if (between > 0) {
    Value isElement = k.isEqual(k.mod(source, between + 1), k.index(0));
    isAfter = k.create<arith::AndIOp>(isAfter, isElement);
    source = k.div(source, between + 1);
  }
  return k.create<arith::AndIOp>(isAfter, k.isLess(source, k.index(size)));
}

void emitPadConstant(KernelBuilder &k, ir::PadConstantOp pad) {
  ArrayRef<int64_t> from = shapeOf(pad.getInput()), to = shapeOf(pad.getResult());
  Value target = k.buffer(pad.getFill() ? 2 : 1);
  Value fill = pad.getFill() ? k.loadScalar(k.buffer(1), k.index(0)) : numberFor(k, target, 0);
  auto interior = [&](size_t dim) { return pad.getInterior() ? (*pad.getInterior())[dim] : 0; };
  auto isPadded = [&](size_t dim) { return pad.getLow()[dim] || pad.getHigh()[dim] || interior(dim); };
  // Dimensions after the last padded one are copied together with it, unless it has new elements inside.
  size_t numOuter = to.size();
  int64_t inner = 1;
  while (numOuter > 0 && !isPadded(numOuter - 1))
    inner *= to[--numOuter];
  int64_t before = 0, after = 0, columns = inner;
  if (numOuter > 0 && interior(numOuter - 1) == 0) {
    --numOuter;
    before = pad.getLow()[numOuter] * inner;
    after = pad.getHigh()[numOuter] * inner;
    columns = from[numOuter] * inner;
  }
  int64_t rows = 1, width = before + columns + after;
  for (int64_t size : to.take_front(numOuter))
    rows *= size;
  SmallVector<int64_t> strides = rowMajorStrides(from);
  loopWholeRowsOfTile(k, rows, std::max<int64_t>(1, elementsPerTile / width), [&](Value row) {
    Value output = k.mul(row, width), input = k.index(0), isCopied, position = row;
    for (size_t dim = numOuter; dim-- > 0;) {
      Value at = dim == 0 ? position : k.mod(position, to[dim]);
      position = k.div(position, to[dim]);
      Value source = at;
      if (isPadded(dim)) {
        Value inside = isInside(k, at, from[dim], pad.getLow()[dim], interior(dim), source);
        isCopied = isCopied ? k.create<arith::AndIOp>(isCopied, inside) : inside;
      }
      input = k.add(input, k.mul(source, strides[dim]));
    }
    auto copy = [&] {
      if (before)
        fillRow(k, fill, target, output, before);
      if (columns)
        copyRow(k, k.buffer(0), input, target, k.add(output, before), columns);
      if (after)
        fillRow(k, fill, target, k.add(output, before + columns), after);
      return KernelBuilder::Values();
    };
    if (!isCopied) {
      copy();
      return;
    }
    k.ifElse(isCopied, {}, copy, [&] {
      fillRow(k, fill, target, output, width);
      return KernelBuilder::Values();
    });
  });
}

/// The operands are columns of a matrix whose rows are the dimensions before the joined one. With several rows a tile
/// has whole rows; with one, each operand has tiles of its own.
void emitConcat(KernelBuilder &k, ir::ConcatOp concat) {
  ArrayRef<int64_t> shape = shapeOf(concat.getResult());
  int64_t rows = 1;
  for (int64_t size : shape.take_front(concat.getDim()))
    rows *= size;
  int64_t total = numElements(concat.getResult()) / rows;
  Value target = k.buffer(concat->getNumOperands());
  SmallVector<int64_t> widths, starts;
  int64_t start = 0;
  for (Value operand : concat->getOperands()) {
    widths.push_back(numElements(operand) / rows);
    starts.push_back(start);
    start += widths.back();
  }
  if (rows > 1) {
    loopWholeRowsOfTile(k, rows, std::max<int64_t>(1, elementsPerTile / total), [&](Value row) {
      Value output = k.mul(row, total);
      for (unsigned i = 0; i < widths.size(); ++i)
        if (widths[i])
          copyRow(k, k.buffer(i), k.mul(row, widths[i]), target, k.add(output, starts[i]), widths[i]);
    });
    return;
  }
  int64_t tiles = 0;
  for (unsigned i = 0; i < widths.size(); ++i) {
    int64_t own = llvm::divideCeil(widths[i], elementsPerTile);
    if (own == 0)
      continue;
    Value tile = k.sub(k.tile(), k.index(tiles));
    Value isOwn = k.create<arith::AndIOp>(k.create<arith::CmpIOp>(arith::CmpIPredicate::sge, tile, k.index(0)),
                                          k.isLess(tile, k.index(own)));
    k.ifThen(isOwn, [&] {
      Value from = k.mul(tile, elementsPerTile), to = k.min(k.add(from, elementsPerTile), k.index(widths[i]));
      copyRow(k, k.buffer(i), k.index(0), target, k.index(starts[i]), from, to, widths[i]);
    });
    tiles += own;
  }
  k.setTiles(tiles);
}

void emitTrilu(KernelBuilder &k, ir::TriluOp trilu) {
  ArrayRef<int64_t> shape = shapeOf(trilu.getResult());
  int64_t columns = shape.back(), height = shape.end()[-2], rows = numElements(trilu.getResult()) / columns;
  Value zero = numberFor(k, k.buffer(1), 0);
  loopWholeRowsOfTile(k, rows, std::max<int64_t>(1, elementsPerTile / columns), [&](Value row) {
    Value start = k.mul(row, columns);
    // The lower triangle ends, or the upper one begins, at this column.
    Value border = k.add(k.mod(row, height), trilu.getDiagonal() + (trilu.getUpper() ? 0 : 1));
    border = k.max(k.index(0), k.min(border, k.index(columns)));
    auto copy = [&](Value at) {
      k.storeScalar(k.loadScalar(k.buffer(0), k.add(start, at)), k.buffer(1), k.add(start, at));
    };
    auto clear = [&](Value at) { k.storeScalar(zero, k.buffer(1), k.add(start, at)); };
    if (trilu.getUpper()) {
      k.loop(k.index(0), border, 1, clear);
      k.loop(border, k.index(columns), 1, copy);
    } else {
      k.loop(k.index(0), border, 1, copy);
      k.loop(border, k.index(columns), 1, clear);
    }
  });
}

void emitIota(KernelBuilder &k, ir::IotaOp iota) {
  ArrayRef<int64_t> shape = shapeOf(iota.getResult());
  int64_t dim = iota.getDim(), inner = rowMajorStrides(shape)[dim], size = shape[dim];
  Type type = computedOf(k.elementOf(k.buffer(0)));
  loopRowsOfTile(k, 1, numElements(iota.getResult()), elementsPerTile, [&](Value, Value from, Value to) {
    k.loop(from, to, 1, [&](Value at) {
      Value place = k.create<arith::IndexCastOp>(k.getI64Type(), k.mod(k.div(at, inner), size)), value;
      if (isa<FloatType>(type)) {
        // In f64, so that each element is rounded once.
        Value real = k.create<arith::SIToFPOp>(k.getF64Type(), place);
        auto number = [&](const APFloat &x) -> Value {
          return k.create<arith::ConstantOp>(k.getF64FloatAttr(x.convertToDouble()));
        };
        value = k.create<arith::AddFOp>(k.create<arith::MulFOp>(real, number(iota.getStep())), number(iota.getStart()));
        if (!type.isF64())
          value = k.create<arith::TruncFOp>(type, value);
      } else {
        auto number = [&](const APFloat &x) -> Value {
          return k.create<arith::ConstantOp>(k.getI64IntegerAttr(int64_t(x.convertToDouble())));
        };
        value =
            k.create<arith::AddIOp>(k.create<arith::MulIOp>(place, number(iota.getStep())), number(iota.getStart()));
        value = convertElement(k, k.getI64Type(), k.elementOf(k.buffer(0)), value);
      }
      k.storeScalar(value, k.buffer(0), at);
    });
  });
}
} // namespace

void addMovementKernels(KernelTable &table) {
  table.add(emitSlice);
  table.add(emitPadConstant);
  table.add(emitConcat);
  table.add(emitTrilu);
  table.add(emitIota);
}

} // namespace dg::codegen
