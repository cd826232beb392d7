// SPDX-License-Identifier: Apache-2.0
// Windows over the last one to three dimensions of [n, c, …]: what convolutions and pools share. Sizes are checked
// once, where types are inferred; everything later reads them.
#pragma once

#include "ir/rules/TypeInference.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace dg::ir {

/// The largest size of a window, and of its strides, padding and dilation: no sum or product of them overflows.
inline constexpr int64_t maxWindowSize = 1 << 24;

/// One window for each place of the output: `kernel` taps, `dilation` apart, that start `strides` apart from `before`
/// elements in front of the input; `after` is the padding at the end.
struct Windows {
  llvm::SmallVector<int64_t, 3> kernel, strides, dilation, before, after;
  bool isCeil = false; ///< a last window that starts inside may reach past the padding

  /// Strides that are left out are `defaultStrides`; no padding is 0, one for each dimension stands for both ends, two
  /// for each are all starts, then all ends; no dilation is 1.
  Windows(llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> padding,
          llvm::ArrayRef<int64_t> dilation, bool isCeil = false);

  size_t rank() const { return kernel.size(); }
  int64_t numTaps() const;
  /// From the first tap to the last.
  int64_t extent(size_t dim) const { return dilation[dim] * (kernel[dim] - 1) + 1; }
  /// `?` where the input is; 0 where no window fits.
  int64_t outputSize(size_t dim, int64_t input) const;
  /// Where tap `tap` of window `place` reads; outside of the input in the padding.
  int64_t position(size_t dim, int64_t place, int64_t tap) const {
    return place * strides[dim] - before[dim] + tap * dilation[dim];
  }
  /// The same windows with dimensions of one tap in front, so that there are three.
  Windows inThreeDimensions() const;
  /// True where both ends are padded alike.
  bool isSymmetric() const { return before == after; }
  bool isPadded() const;
  bool isDilated() const;
};

/// The attributes of a window, as a user wrote them, for as many dimensions as the kernel has. What is wrong with them
/// is told by the answer; empty where nothing is.
std::string findWindowError(llvm::ArrayRef<int64_t> kernel, llvm::ArrayRef<int64_t> strides,
                            llvm::ArrayRef<int64_t> padding, llvm::ArrayRef<int64_t> dilation);

/// The sizes with 1 in front until there are three.
llvm::SmallVector<int64_t, 3> inThreeDimensions(llvm::ArrayRef<int64_t> sizes);

/// Calls `visit(output, input, tap)` for each tap of each window that is inside the input, windows and taps in
/// row-major order; all three count elements of one image of those dimensions.
template <typename Visit>
void forEachTap(const Windows &windows, llvm::ArrayRef<int64_t> inputSizes, llvm::ArrayRef<int64_t> outputSizes,
                Visit visit) {
  Windows w = windows.inThreeDimensions();
  auto in = inThreeDimensions(inputSizes), out = inThreeDimensions(outputSizes);
  auto isInside = [&](size_t dim, int64_t at) { return at >= 0 && at < in[dim]; };
  int64_t output = 0;
  for (int64_t d = 0; d < out[0]; ++d)
    for (int64_t h = 0; h < out[1]; ++h)
      for (int64_t x = 0; x < out[2]; ++x, ++output) {
        int64_t tap = 0;
        for (int64_t i = 0; i < w.kernel[0]; ++i)
          for (int64_t j = 0; j < w.kernel[1]; ++j)
            for (int64_t k = 0; k < w.kernel[2]; ++k, ++tap) {
              int64_t a = w.position(0, d, i), b = w.position(1, h, j), c = w.position(2, x, k);
              if (isInside(0, a) && isInside(1, b) && isInside(2, c))
                visit(output, (a * in[1] + b) * in[2] + c, tap);
            }
      }
}

} // namespace dg::ir
