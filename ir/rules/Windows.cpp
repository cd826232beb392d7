// SPDX-License-Identifier: Apache-2.0
#include "ir/rules/Windows.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::ir {

Windows::Windows(ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides, ArrayRef<int64_t> padding,
                 ArrayRef<int64_t> dilation, bool isCeil)
    : kernel(kernel), strides(strides), dilation(dilation), isCeil(isCeil) {
  size_t rank = kernel.size();
  if (this->dilation.empty())
    this->dilation.assign(rank, 1);
  before.assign(rank, 0);
  after.assign(rank, 0);
  if (padding.empty())
    return;
  bool hasEnds = padding.size() == 2 * rank;
  for (size_t dim = 0; dim < rank; ++dim) {
    before[dim] = padding[dim];
    after[dim] = padding[hasEnds ? rank + dim : dim];
  }
}

int64_t Windows::numTaps() const {
  int64_t taps = 1;
  for (int64_t size : kernel)
    taps *= size;
  return taps;
}

int64_t Windows::outputSize(size_t dim, int64_t input) const {
  if (ShapedType::isDynamic(input) || ShapedType::isDynamic(kernel[dim]))
    return ShapedType::kDynamic;
  int64_t room = input + before[dim] + after[dim] - extent(dim);
  if (room < 0)
    return 0;
  int64_t windows = room / strides[dim] + 1;
  bool hasRest = room % strides[dim] != 0;
  // As PyTorch: the last window starts in the input or in the padding in front of it.
  return isCeil && hasRest && windows * strides[dim] < input + before[dim] ? windows + 1 : windows;
}

Windows Windows::inThreeDimensions() const {
  Windows wide = *this;
  size_t missing = 3 - rank();
  for (auto [sizes, value] : {std::pair(&wide.kernel, 1), std::pair(&wide.strides, 1), std::pair(&wide.dilation, 1),
                              std::pair(&wide.before, 0), std::pair(&wide.after, 0)})
    sizes->insert(sizes->begin(), missing, value);
  return wide;
}

bool Windows::isPadded() const {
  return llvm::any_of(before, [](int64_t size) { return size != 0; }) ||
         llvm::any_of(after, [](int64_t size) { return size != 0; });
}

bool Windows::isDilated() const {
  return llvm::any_of(dilation, [](int64_t step) { return step != 1; });
}

SmallVector<int64_t, 3> inThreeDimensions(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t, 3> three(sizes);
  three.insert(three.begin(), 3 - sizes.size(), 1);
  return three;
}

std::string findWindowError(ArrayRef<int64_t> kernel, ArrayRef<int64_t> strides, ArrayRef<int64_t> padding,
                            ArrayRef<int64_t> dilation) {
  size_t rank = kernel.size();
  auto text = [](ArrayRef<int64_t> sizes) {
    return "[" + llvm::join(llvm::map_range(sizes, [](int64_t size) { return std::to_string(size); }), ", ") + "]";
  };
  auto areAtLeast = [](ArrayRef<int64_t> sizes, int64_t least) {
    return llvm::all_of(sizes, [&](int64_t size) { return size >= least && size <= maxWindowSize; });
  };
  if (rank < 1 || rank > 3 || !areAtLeast(kernel, 1))
    return "has kernel " + text(kernel) + ", expected one to three sizes above 0";
  if (strides.size() != rank || !areAtLeast(strides, 1))
    return "has strides " + text(strides) + ", expected " + std::to_string(rank) + " above 0, one for each dimension";
  if ((!padding.empty() && padding.size() != rank && padding.size() != 2 * rank) || !areAtLeast(padding, 0))
    return "has padding " + text(padding) + ", expected " + std::to_string(rank) + " sizes of 0 or more, or " +
           std::to_string(2 * rank) + ": all starts, then all ends";
  if ((!dilation.empty() && dilation.size() != rank) || !areAtLeast(dilation, 1))
    return "has dilation " + text(dilation) + ", expected " + std::to_string(rank) + " above 0, one for each dimension";
  return "";
}

} // namespace dg::ir
