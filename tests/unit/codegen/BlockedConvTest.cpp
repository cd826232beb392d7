// SPDX-License-Identifier: Apache-2.0
// Proves that convolutions of images with blocked channels compute what their reference evaluation does, with whatever
// follows them in their region, over strides, frames, odd and prime sizes, for both widths of vectors.
#include "tests/unit/codegen/KernelCases.h"

#include <gtest/gtest.h>

#include <sstream>

using namespace dg::codegen;

namespace {

struct Sizes {
  int64_t images, blocks, height, width, outputBlocks, kernelHeight, kernelWidth, strideHeight = 1, strideWidth = 1,
                                                                                  frameHeight = 0, frameWidth = 0;
  bool isPlain = false; ///< `blocks` are channels, one after the other
};

/// The op with nothing in its region, or with a factor for each channel, a residual, a number for each row and relu.
std::string textOf(const Sizes &s, bool hasExtras) {
  auto tensor = [](std::initializer_list<int64_t> sizes) {
    std::string text = "tensor<";
    for (int64_t size : sizes)
      text += std::to_string(size) + "x";
    return text + "f32>";
  };
  int64_t rows = (s.height - s.kernelHeight) / s.strideHeight + 1,
          columns = (s.width - s.kernelWidth) / s.strideWidth + 1;
  std::string input =
      s.isPlain ? tensor({s.images, s.blocks, s.height, s.width}) : tensor({s.images, s.blocks, s.height, s.width, 16});
  std::string weight = s.isPlain ? tensor({s.outputBlocks, s.blocks, s.kernelHeight, s.kernelWidth, 16})
                                 : tensor({s.outputBlocks, s.blocks, s.kernelHeight, s.kernelWidth, 16, 16});
  std::string sums = tensor({s.images, s.outputBlocks, rows, columns, 16});
  std::string result = tensor({s.images, s.outputBlocks, rows + 2 * s.frameHeight, columns + 2 * s.frameWidth, 16});
  std::string factor = tensor({s.outputBlocks, 1, 1, 16}), line = tensor({rows, 1, 1});
  std::ostringstream os;
  os << "%a = builtin.unrealized_conversion_cast to " << input << "\n%b = builtin.unrealized_conversion_cast to "
     << weight << "\n%c = builtin.unrealized_conversion_cast to " << factor
     << "\n%d = builtin.unrealized_conversion_cast to " << sums << "\n%e = builtin.unrealized_conversion_cast to "
     << line << "\n";
  os << "%r = dg.blocked_conv %a, %b" << (hasExtras ? ", %c, %d, %e" : "")
     << " {strides = array<i64: " << s.strideHeight << ", " << s.strideWidth
     << ">, frame = array<i64: " << s.frameHeight << ", " << s.frameWidth << ">} : (" << input << ", " << weight;
  if (hasExtras)
    os << ", " << factor << ", " << sums << ", " << line;
  os << ") -> " << result << " {\n^bb0(%s: " << sums;
  if (!hasExtras) {
    os << "):\n dg.return %s : (" << sums << ") -> ()\n}";
    return os.str();
  }
  os << ", %f: " << factor << ", %o: " << sums << ", %l: " << line << "):\n";
  os << "%m = dg.mul %s, %f : (" << sums << ", " << factor << ") -> " << sums << "\n";
  os << "%n = dg.add %m, %o : (" << sums << ", " << sums << ") -> " << sums << "\n";
  os << "%p = dg.add %n, %l : (" << sums << ", " << line << ") -> " << sums << "\n";
  os << "%q = dg.relu %p : (" << sums << ") -> " << sums << "\n";
  os << "dg.return %q : (" << sums << ") -> ()\n}";
  return os.str();
}

void check(const char *target, std::initializer_list<Sizes> all) {
  KernelCases cases(target);
  for (const Sizes &sizes : all)
    for (bool hasExtras : {false, true})
      cases.addText("dg.blocked_conv", textOf(sizes, hasExtras));
  cases.check();
}

const std::initializer_list<Sizes> pointwise = {
    {1, 4, 14, 14, 4, 1, 1},       {2, 3, 7, 7, 5, 1, 1},
    {1, 2, 13, 1, 1, 1, 1},        {1, 1, 1, 1, 1, 1, 1},
    {1, 4, 28, 28, 2, 1, 1, 2, 2}, {3, 2, 9, 11, 3, 1, 1, 2, 3},
    {1, 24, 5, 5, 17, 1, 1},       {1, 2, 6, 10, 2, 1, 1, 1, 1, 1, 1},
};
const std::initializer_list<Sizes> windows = {
    {1, 2, 16, 16, 4, 3, 3},
    {2, 1, 9, 9, 3, 3, 3, 1, 1, 1, 1},
    {1, 3, 17, 13, 2, 3, 3, 2, 2},
    {1, 2, 19, 31, 1, 3, 5, 1, 2, 2, 0},
    {1, 1, 5, 5, 1, 5, 5},
    {1, 3, 20, 29, 2, 7, 7, 2, 2, 0, 0, true},
    {2, 1, 11, 23, 3, 5, 5, 1, 1, 1, 3, true},
    {1, 8, 9, 9, 16, 3, 3},
    {1, 7, 6, 40, 2, 2, 1, 1, 1, 0, 2, true},
};

} // namespace

TEST(BlockedConv, PointwiseNative) { check("native", pointwise); }
TEST(BlockedConv, WindowsNative) { check("native", windows); }

TEST(BlockedConv, ThirtyTwoByteVectors) {
  check("x86-64-v3", pointwise);
  check("x86-64-v3", windows);
}

TEST(BlockedConv, RandomShapes) {
  std::mt19937 random(5);
  auto upTo = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(1, most)(random); };
  KernelCases cases;
  for (int number = 0; number < 12; ++number) {
    Sizes s{upTo(2), upTo(3), 0, 0, upTo(4), upTo(4), upTo(4), upTo(3), upTo(3), upTo(3) - 1, upTo(3) - 1};
    s.isPlain = number % 3 == 0;
    s.height = s.kernelHeight - 1 + upTo(20), s.width = s.kernelWidth - 1 + upTo(33);
    cases.addText("dg.blocked_conv", textOf(s, number % 2));
  }
  cases.check();
}
