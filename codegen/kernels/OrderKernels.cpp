// SPDX-License-Identifier: Apache-2.0
// Kernels along one dimension: each line of elements is walked by one tile, one element after the other.
#include "codegen/emit/ElementArithmetic.h"
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/Places.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/arrangement/OrderOps.h"

using namespace mlir;

namespace dg::codegen {

namespace {
using Values = KernelBuilder::Values;

/// A tensor as lines along an axis: element i of line l is at first(l) + i · stride.
struct Lines {
  int64_t count = 1, length = 1, stride = 1;

  Lines(ArrayRef<int64_t> shape, int64_t axis) {
    if (axis < 0)
      axis += int64_t(shape.size());
    length = shape[axis];
    for (int64_t size : shape.drop_front(axis + 1))
      stride *= size;
    for (int64_t size : shape.take_front(axis))
      count *= size;
    count *= stride;
  }
  Value first(KernelBuilder &k, Value line) const {
    return k.add(k.mul(k.div(line, stride), length * stride), k.mod(line, stride));
  }
};

void forEachLine(KernelBuilder &k, const Lines &lines, llvm::function_ref<void(Value line)> body) {
  loopWholeRowsOfTile(k, lines.count, std::max<int64_t>(1, elementsPerTile / std::max<int64_t>(lines.length, 1)), body);
}

Type typeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getElementType(); }

/// Whether a comes before b: it is larger (or smaller); NaN is larger than all, or comes before all with `nanFirst`.
Value comesBefore(KernelBuilder &k, Type type, Value a, Value b, bool isSmallerFirst, bool nanFirst) {
  Value before = compareElements(k, type, isSmallerFirst ? Comparison::lt : Comparison::gt, a, b);
  if (!isa<FloatType>(type))
    return before;
  auto isNan = [&](Value x) -> Value { return k.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x); };
  Value no = k.create<arith::ConstantOp>(k.getBoolAttr(true));
  auto isNumber = [&](Value x) -> Value { return k.create<arith::XOrIOp>(isNan(x), no); };
  Value byNan = isSmallerFirst && !nanFirst ? k.create<arith::AndIOp>(isNumber(a), isNan(b))
                                            : k.create<arith::AndIOp>(isNan(a), isNumber(b));
  return k.create<arith::OrIOp>(before, byNan);
}

/// The place in its line of the best element.
Value findBest(KernelBuilder &k, Type type, Value first, const Lines &lines, bool isSmallerFirst, bool last) {
  Value start = k.loadScalar(k.buffer(0), first);
  return k.loop(k.index(1), k.index(lines.length), 1, ValueRange{start, k.index(0)},
                [&](Value i, ValueRange carried) -> Values {
                  Value x = k.loadScalar(k.buffer(0), k.add(first, k.mul(i, lines.stride)));
                  Value wins = last ? comesBefore(k, type, carried[0], x, isSmallerFirst, true)
                                    : comesBefore(k, type, x, carried[0], isSmallerFirst, true);
                  return last ? Values{k.select(wins, carried[0], x), k.select(wins, carried[1], i)}
                              : Values{k.select(wins, x, carried[0]), k.select(wins, i, carried[1])};
                })[1];
}

template <typename Op, bool isSmallest> void emitArg(KernelBuilder &k, Op arg) {
  Lines lines(shapeOf(arg.getInput()), int64_t(arg.getAxis()));
  forEachLine(k, lines, [&](Value line) {
    Value best = findBest(k, typeOf(arg.getInput()), lines.first(k, line), lines, isSmallest, arg.getLast());
    k.storeScalar(k.create<arith::IndexCastOp>(k.getI64Type(), best), k.buffer(1), line);
  });
}

void emitHardmax(KernelBuilder &k, ir::HardmaxOp hardmax) {
  Type type = typeOf(hardmax.getInput());
  Lines lines(shapeOf(hardmax.getInput()), int64_t(hardmax.getAxis()));
  forEachLine(k, lines, [&](Value line) {
    Value first = lines.first(k, line), best = findBest(k, type, first, lines, false, false);
    Value zero = elementConstant(k, type, 0, k.number(0)), one = elementConstant(k, type, 1, k.number(0));
    k.loop(0, lines.length, 1, [&](Value i) {
      k.storeScalar(k.select(k.isEqual(i, best), one, zero), k.buffer(1), k.add(first, k.mul(i, lines.stride)));
    });
  });
}

void emitCumsum(KernelBuilder &k, ir::CumsumOp cumsum) {
  Lines lines(shapeOf(cumsum.getInput()), int64_t(cumsum.getAxis()));
  forEachLine(k, lines, [&](Value line) {
    Value first = lines.first(k, line), zero = elementConstant(k, typeOf(cumsum.getInput()), 0, k.number(0));
    k.loop(k.index(0), k.index(lines.length), 1, ValueRange{zero}, [&](Value i, ValueRange carried) -> Values {
      Value place = cumsum.getReverse() ? k.sub(k.index(lines.length - 1), i) : i;
      Value at = k.add(first, k.mul(place, lines.stride));
      Value sum = addElements(k, carried[0], k.loadScalar(k.buffer(0), at));
      k.storeScalar(cumsum.getExclusive() ? carried[0] : sum, k.buffer(1), at);
      return {sum};
    });
  });
}

/// The order of a line by merge sort of places, bottom up, between two pieces of workspace; the answer is the sorted
/// one.
Value emitSort(KernelBuilder &k, const Lines &lines, llvm::function_ref<Value(Value place)> load,
               llvm::function_ref<Value(Value a, Value b)> isBefore, Value from, Value to) {
  Type i32 = k.getI32Type();
  auto placeAt = [&](Value buffer, Value at) -> Value {
    return k.create<arith::IndexCastOp>(k.getIndexType(), k.loadScalar(buffer, at));
  };
  k.loop(0, lines.length, 1, [&](Value i) { k.storeScalar(k.create<arith::IndexCastOp>(i32, i), from, i); });
  for (int64_t width = 1; width < lines.length; width *= 2) {
    k.loop(0, lines.length, 2 * width, [&](Value start) {
      Value end = k.min(k.add(start, 2 * width), k.index(lines.length));
      Value middle = k.min(k.add(start, width), k.index(lines.length));
      k.loop(start, end, 1, ValueRange{start, middle}, [&](Value out, ValueRange carried) -> Values {
        Value i = carried[0], j = carried[1], last = k.index(lines.length - 1);
        Value left = placeAt(from, k.min(i, last)), right = placeAt(from, k.min(j, last));
        Value hasLeft = k.isLess(i, middle), hasRight = k.isLess(j, end);
        // A tie goes to the left one, which came first.
        Value rightWins = isBefore(load(right), load(left));
        Value yes = k.create<arith::ConstantOp>(k.getBoolAttr(true));
        Value noLeft = k.create<arith::XOrIOp>(hasLeft, yes);
        Value takesRight = k.create<arith::AndIOp>(hasRight, k.create<arith::OrIOp>(noLeft, rightWins));
        k.storeScalar(k.create<arith::IndexCastOp>(i32, k.select(takesRight, right, left)), to, out);
        return {k.select(takesRight, i, k.add(i, 1)), k.select(takesRight, k.add(j, 1), j)};
      });
    });
    std::swap(from, to);
  }
  return from;
}

void emitTopK(KernelBuilder &k, ir::TopKOp topK) {
  Type type = typeOf(topK.getInput());
  Lines lines(shapeOf(topK.getInput()), int64_t(topK.getAxis()));
  Lines results(shapeOf(topK.getValues()), int64_t(topK.getAxis()));
  Value one = k.stack(lines.length, k.getI32Type()), other = k.stack(lines.length, k.getI32Type());
  forEachLine(k, lines, [&](Value line) {
    Value first = lines.first(k, line), result = results.first(k, line);
    auto load = [&](Value place) { return k.loadScalar(k.buffer(0), k.add(first, k.mul(place, lines.stride))); };
    Value sorted = emitSort(
        k, lines, load,
        [&](Value a, Value b) { return comesBefore(k, type, a, b, topK.getSmallest(), /*nanFirst=*/false); }, one,
        other);
    k.loop(0, results.length, 1, [&](Value i) {
      Value place = k.create<arith::IndexCastOp>(k.getIndexType(), k.loadScalar(sorted, i));
      Value at = k.add(result, k.mul(i, results.stride));
      k.storeScalar(load(place), k.buffer(1), at);
      k.storeScalar(k.create<arith::IndexCastOp>(k.getI64Type(), place), k.buffer(2), at);
    });
  });
}

void emitTopKGrad(KernelBuilder &k, ir::TopKGradOp topK) {
  Lines grads(shapeOf(topK.getGrad()), int64_t(topK.getAxis()));
  Lines lines(shapeOf(topK.getResult()), int64_t(topK.getAxis()));
  Type type = typeOf(topK.getGrad());
  forEachLine(k, lines, [&](Value line) {
    Value first = lines.first(k, line), grad = grads.first(k, line);
    k.loop(0, lines.length, 1, [&](Value i) {
      k.storeScalar(elementConstant(k, type, 0, k.number(0)), k.buffer(2), k.add(first, k.mul(i, lines.stride)));
    });
    k.loop(0, grads.length, 1, [&](Value i) {
      Value from = k.add(grad, k.mul(i, grads.stride)), place = loadPlace(k, k.buffer(1), from, lines.length);
      Value at = k.add(first, k.mul(place, lines.stride));
      k.storeScalar(addElements(k, k.loadScalar(k.buffer(2), at), k.loadScalar(k.buffer(0), from)), k.buffer(2), at);
    });
  });
}
} // namespace

void addOrderKernels(KernelTable &table) {
  table.add(emitArg<ir::ArgMaxOp, false>);
  table.add(emitArg<ir::ArgMinOp, true>);
  table.add(emitHardmax);
  table.add(emitCumsum);
  table.add(emitTopK);
  table.add(emitTopKGrad);
}

} // namespace dg::codegen
