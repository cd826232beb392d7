// SPDX-License-Identifier: Apache-2.0
// The rows of ResampleOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> resampleRows() {
  return {
      {"dg.resample %a {dim = 1 : i64, offsets = array<i64: 0, 2, 2, 5>, places = array<i64: 1, 0, 2, 1, 2>, weights = "
       "array<f64: 0.5, 2.0, -1.0, 0.25, 3.0>}",
       {{"n 3 d"}}},
      {"dg.resize %a {sizes = array<i64: -1, 7>}", {{"n 4"}}},
      {"dg.resize %a {sizes = array<i64: -1, 3>, rounding = \"ceil\", coordinates = \"asymmetric\"}", {{"n 5"}}},
      {"dg.resize %a {sizes = array<i64: -1, 5, 7>, mode = \"linear\"}", {{"n 3 4"}}},
      {"dg.resize %a {sizes = array<i64: -1, 2, 7>, mode = \"linear\", coordinates = \"align_corners\"}", {{"n 3 4"}}},
      {"dg.resize %a {sizes = array<i64: -1, 3, 2>, mode = \"cubic\", antialias}", {{"n 5 6"}}},
      {"dg.resize %a {sizes = array<i64: -1, 6>, scales = array<f64: 1.0, 1.6>, mode = \"cubic\", exclude_outside, "
       "coordinates = \"half_pixel_symmetric\"}",
       {{"n 4"}}},
      {"dg.resize %a {sizes = array<i64: -1, 5>, mode = \"linear\", coordinates = \"tf_crop_and_resize\", roi = "
       "array<f64: 0.0, 0.4, 1.0, 1.3>, extrapolation = 10.0}",
       {{"n 4"}}},
      {"dg.col2im %a {image = array<i64: 4, 5>, kernel = array<i64: 2, 3>}", {{"n c*6 9"}}},
      {"dg.col2im %a {image = array<i64: 5, 5>, kernel = array<i64: 2, 2>, strides = array<i64: 2, 1>, dilations = "
       "array<i64: 1, 2>, low = array<i64: 1, 0>, high = array<i64: 0, 2>}",
       {{"n c*4 15"}}},
  };
}

} // namespace dg::ir::test
