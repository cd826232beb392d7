// SPDX-License-Identifier: Apache-2.0
// Loops over windows of one to three dimensions that know where the padding is. What pools and general convolutions are
// written with: vectors run along a row of the output where every tap of the row is inside; the ends of a row, where
// some are not, go one element at a time.
#pragma once

#include "codegen/emit/KernelBuilder.h"
#include "ir/rules/Windows.h"

namespace dg::codegen {

class WindowLoops {
public:
  /// `input` and `output` are the sizes of the places, without batch and channels.
  WindowLoops(KernelBuilder &kernel, const ir::Windows &windows, llvm::ArrayRef<int64_t> input,
              llvm::ArrayRef<int64_t> output);

  const ir::Windows windows; ///< in three dimensions
  llvm::SmallVector<int64_t, 3> input, output;

  int64_t inputPlaces() const { return input[0] * input[1] * input[2]; }
  int64_t outputPlaces() const { return output[0] * output[1] * output[2]; }
  int64_t outputRows() const { return output[0] * output[1]; }

  struct Range {
    Value from, to;
  };
  /// The taps of a dimension that are inside the input for window `place`.
  Range tapsInside(unsigned dim, Value place);
  /// The windows of a dimension that have tap `tap` inside the input.
  Range windowsInside(unsigned dim, Value tap);
  /// Where tap `tap` of window `place` reads along the dimension; not negative for taps inside.
  Value position(unsigned dim, Value place, Value tap);
  /// How many taps of the window count in a mean, as a number.
  Value countTaps(unsigned dim, Value place, bool includesPadding);

  using TapBody = llvm::function_ref<KernelBuilder::Values(Value tap, Value at, ValueRange carried)>;
  /// For each tap inside of the window at (depth, row, column), in row-major order: its number in the kernel and where
  /// it reads in the image.
  KernelBuilder::Values forEachTap(Value depth, Value row, Value column, ValueRange carried, TapBody body);
  /// The same for columns that are all inside, of which `column` is the first; `at` is where the first of them reads.
  KernelBuilder::Values forEachTapOfColumns(Value depth, Value row, Value column, ValueRange carried, TapBody body);

  /// `columns(column, lanes)` for vectors of columns that are inside, `single(column)` for each of the others.
  void forEachColumn(llvm::function_ref<void(Value, Lanes)> columns, llvm::function_ref<void(Value)> single);

  /// The elements of a range, counted from its start: vectors of `width`, then one by one.
  void forEachIn(Range range, int64_t width, llvm::function_ref<void(Value, Lanes)> body);
  /// The sum over a range, counted from its start, of what `element` gives.
  Value sumOf(Range range, llvm::function_ref<Value(Value, Lanes)> element);

private:
  KernelBuilder::Values forEachTapIn(Value depth, Value row, Value column, Range columnTaps, ValueRange carried,
                                     TapBody body);

  KernelBuilder &k;
  std::pair<int64_t, int64_t> inside;
};

} // namespace dg::codegen
