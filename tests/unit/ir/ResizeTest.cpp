// SPDX-License-Identifier: Apache-2.0
// Proves that resize has the numbers that ONNX's own specification gives for its modes.
#include "tests/unit/ir/OpTable.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dg::ir;
using namespace dg::ir::test;

namespace {

/// 1, 2, 3, … in `shape`, resized.
std::vector<double> resized(std::vector<int64_t> shape, const std::string &attributes) {
  auto context = makeContext();
  HostTensor input{shape, {}};
  std::string type;
  for (int64_t size : shape)
    type += std::to_string(size) + "x";
  for (int64_t i = 0; i < input.numElements(); ++i)
    input.data.push_back(double(i + 1));
  auto module = parse(*context, "dg.graph @g(%x: tensor<" + type + "f32>) { %r = dg.resize %x {" + attributes +
                                    "}\n dg.return %r {names = [\"r\"]} }");
  GraphOp graph = *module->getOps<GraphOp>().begin();
  EXPECT_TRUE(succeeded(deduce(graph)));
  ParameterStore none;
  auto results = ReferenceExecutor().run(graph, {{"x", input}}, none);
  EXPECT_TRUE(succeeded(results));
  return results->at("r").data;
}

void expectNear(const std::vector<double> &found, const std::vector<double> &expected) {
  ASSERT_GE(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], 1e-6) << "element " << i;
}

} // namespace

TEST(Resize, HasTheNumbersOfTheSpecification) {
  // resize_upsample_scales_linear
  expectNear(resized({2, 2}, "sizes = array<i64: 4, 4>, mode = \"linear\""),
             {1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4});
  // resize_upsample_scales_linear_align_corners
  expectNear(
      resized({2, 2}, "sizes = array<i64: 4, 4>, mode = \"linear\", coordinates = \"align_corners\""),
      {1, 4.0 / 3, 5.0 / 3, 2, 5.0 / 3, 2, 7.0 / 3, 8.0 / 3, 7.0 / 3, 8.0 / 3, 3, 10.0 / 3, 3, 10.0 / 3, 11.0 / 3, 4});
  // resize_upsample_scales_cubic, the first row
  expectNear(resized({4, 4}, "sizes = array<i64: 8, 8>, mode = \"cubic\""),
             {0.47265625, 0.76953125, 1.24609375, 1.875, 2.28125, 2.91015625, 3.38671875, 3.68359375});
  // resize_upsample_scales_cubic_A_n0p5_exclude_outside, the first row
  expectNear(resized({4, 4}, "sizes = array<i64: 8, 8>, mode = \"cubic\", cubic_coefficient = -0.5, exclude_outside"),
             {0.55882353, 0.81494204, 1.35698249, 1.89705882, 2.39705882, 2.93713516, 3.47917561, 3.73529412});
  // resize_downsample_scales_linear_antialias and …_cubic_antialias
  expectNear(resized({4, 4}, "sizes = array<i64: 2, 2>, scales = array<f64: 0.6, 0.6>, mode = \"linear\", antialias"),
             {2.875, 4.5, 9.375, 11});
  expectNear(resized({4, 4}, "sizes = array<i64: 2, 2>, scales = array<f64: 0.6, 0.6>, mode = \"cubic\", antialias"),
             {2.5180721, 4.2858863, 9.589329, 11.357142});
  // resize_downsample_scales_linear_half_pixel_symmetric
  expectNear(resized({4}, "sizes = array<i64: 2>, scales = array<f64: 0.6>, mode = \"linear\", coordinates = "
                          "\"half_pixel_symmetric\""),
             {1.6666667, 3.3333333});
  // resize_upsample_scales_nearest
  expectNear(resized({2, 2}, "sizes = array<i64: 4, 6>, coordinates = \"asymmetric\", rounding = \"floor\""),
             {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4});
}
