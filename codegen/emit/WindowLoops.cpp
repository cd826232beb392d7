// SPDX-License-Identifier: Apache-2.0
#include "codegen/emit/WindowLoops.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::codegen {

using Values = KernelBuilder::Values;

WindowLoops::WindowLoops(KernelBuilder &kernel, const ir::Windows &windows, ArrayRef<int64_t> input,
                         ArrayRef<int64_t> output)
    : windows(windows.inThreeDimensions()), input(ir::inThreeDimensions(input)), output(ir::inThreeDimensions(output)),
      k(kernel) {
  const ir::Windows &w = this->windows;
  int64_t columns = this->output[2];
  int64_t first = std::min(columns, int64_t(llvm::divideCeil(w.before[2], w.strides[2])));
  int64_t room = this->input[2] + w.before[2] - w.extent(2);
  int64_t end = room < 0 ? first : std::clamp(room / w.strides[2] + 1, first, columns);
  inside = {first, end};
}

/// How many of `taps` taps, `dilation` apart, lie in front of `distance`.
static Value tapsBefore(KernelBuilder &k, Value distance, int64_t dilation, int64_t taps) {
  Value positive = k.max(distance, k.index(0));
  return k.min(k.div(k.add(positive, dilation - 1), dilation), k.index(taps));
}

WindowLoops::Range WindowLoops::tapsInside(unsigned dim, Value place) {
  int64_t taps = windows.kernel[dim], dilation = windows.dilation[dim];
  Value start = k.mul(place, windows.strides[dim]);
  return {tapsBefore(k, k.sub(k.index(windows.before[dim]), start), dilation, taps),
          tapsBefore(k, k.sub(k.index(windows.before[dim] + input[dim]), start), dilation, taps)};
}

WindowLoops::Range WindowLoops::windowsInside(unsigned dim, Value tap) {
  Value start = k.mul(tap, windows.dilation[dim]);
  return {tapsBefore(k, k.sub(k.index(windows.before[dim]), start), windows.strides[dim], output[dim]),
          tapsBefore(k, k.sub(k.index(windows.before[dim] + input[dim]), start), windows.strides[dim], output[dim])};
}

Value WindowLoops::position(unsigned dim, Value place, Value tap) {
  Value padded = k.add(k.mul(place, windows.strides[dim]), k.mul(tap, windows.dilation[dim]));
  return windows.before[dim] ? k.sub(padded, k.index(windows.before[dim])) : padded;
}

Value WindowLoops::countTaps(unsigned dim, Value place, bool includesPadding) {
  Range range = tapsInside(dim, place);
  if (includesPadding) {
    Value start = k.mul(place, windows.strides[dim]);
    int64_t end = windows.before[dim] + input[dim] + windows.after[dim];
    range = {k.index(0), tapsBefore(k, k.sub(k.index(end), start), windows.dilation[dim], windows.kernel[dim])};
  }
  Value count = k.max(k.sub(range.to, range.from), k.index(1));
  return k.create<arith::SIToFPOp>(k.real, k.create<arith::IndexCastOp>(k.getI64Type(), count));
}

Values WindowLoops::forEachTapIn(Value depth, Value row, Value column, Range columnTaps, ValueRange carried,
                                 TapBody body) {
  Range depths = tapsInside(0, depth), rows = tapsInside(1, row);
  return k.loop(depths.from, depths.to, 1, carried, [&](Value i, ValueRange outer) {
    Value plane = k.mul(position(0, depth, i), input[1]);
    return k.loop(rows.from, rows.to, 1, outer, [&](Value j, ValueRange middle) {
      Value line = k.mul(k.add(plane, position(1, row, j)), input[2]);
      Value taps = k.mul(k.add(k.mul(i, windows.kernel[1]), j), windows.kernel[2]);
      return k.loop(columnTaps.from, columnTaps.to, 1, middle, [&](Value x, ValueRange inner) {
        return body(k.add(taps, x), k.add(line, position(2, column, x)), inner);
      });
    });
  });
}

Values WindowLoops::forEachTap(Value depth, Value row, Value column, ValueRange carried, TapBody body) {
  return forEachTapIn(depth, row, column, tapsInside(2, column), carried, body);
}

Values WindowLoops::forEachTapOfColumns(Value depth, Value row, Value column, ValueRange carried, TapBody body) {
  return forEachTapIn(depth, row, column, {k.index(0), k.index(windows.kernel[2])}, carried, body);
}

void WindowLoops::forEachColumn(llvm::function_ref<void(Value, Lanes)> columns,
                                llvm::function_ref<void(Value)> single) {
  auto [first, end] = inside;
  if (first > 0)
    k.loop(0, first, 1, single);
  if (end > first)
    k.loopVectors(end - first, [&, first = first](Value at, Lanes lanes) { columns(k.add(at, first), lanes); });
  if (end < output[2])
    k.loop(end, output[2], 1, single);
}

void WindowLoops::forEachIn(Range range, int64_t width, llvm::function_ref<void(Value, Lanes)> body) {
  Value count = k.sub(range.to, range.from), full = k.mul(k.div(count, width), width);
  if (width > 1)
    k.loop(k.index(0), full, width, [&](Value at) { body(at, {width, width}); });
  k.loop(width > 1 ? full : k.index(0), count, 1, [&](Value at) { body(at, {1, 1}); });
}

Value WindowLoops::sumOf(Range range, llvm::function_ref<Value(Value, Lanes)> element) {
  Value count = k.sub(range.to, range.from), full = k.mul(k.div(count, k.lanes), k.lanes);
  Value vector = k.loop(k.index(0), full, k.lanes, k.splat(0.0, k.lanes), [&](Value at, ValueRange v) -> Values {
    return {k.fadd(v[0], element(at, {k.lanes, k.lanes}))};
  })[0];
  return k.loop(full, count, 1, k.sumLanes(vector),
                [&](Value at, ValueRange v) -> Values { return {k.fadd(v[0], k.sumLanes(element(at, {1, 1})))}; })[0];
}

} // namespace dg::codegen
