// SPDX-License-Identifier: Apache-2.0
// The rows of ConvolutionOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> convolutionRows() {
  return {
      {"dg.conv2d %a, %b", {{"n c 6 5"}, {"o c 3 2"}}},
      {"dg.conv2d %a, %b, %c", {{"n c 4 4"}, {"o c 3 3"}, {"o"}}},
      {"dg.conv2d %a, %b {strides = array<i64: 2, 1>, padding = array<i64: 1, 2>}", {{"n c 6 5"}, {"o c 3 3"}}},
      {"dg.conv2d_input_grad %a, %b {input_size = array<i64: 6, 5>}", {{"n o 4 4"}, {"o c 3 2"}}},
      {"dg.conv2d_input_grad %a, %b {input_size = array<i64: 6, 5>, strides = array<i64: 2, 1>, padding = array<i64: "
       "1, 2>}",
       {{"n o 3 7"}, {"o c 3 3"}}},
      {"dg.conv2d_weight_grad %a, %b {kernel_size = array<i64: 3, 2>}", {{"n o 4 4"}, {"n c 6 5"}}},
      {"dg.conv2d_weight_grad %a, %b {kernel_size = array<i64: 3, 3>, strides = array<i64: 2, 1>, padding = array<i64: "
       "1, 2>}",
       {{"n o 3 7"}, {"n c 6 5"}}},
      {"dg.conv %a, %b", {{"n c 6"}, {"o c 3"}}},
      {"dg.conv %a, %b, %c {padding = array<i64: 1, 1>}", {{"n c 4 4"}, {"o c 3 3"}, {"o"}}},
      {"dg.conv %a, %b {strides = array<i64: 2, 1>, padding = array<i64: 1, 0, 0, 2>}", {{"n c 6 5"}, {"o c 3 3"}}},
      {"dg.conv %a, %b {dilation = array<i64: 2>, groups = $g : i64}", {{"n g*c 7"}, {"g*o c 3"}}},
      {"dg.conv %a, %b, %c {groups = $g : i64}", {{"n g 4 3"}, {"g 1 2 2"}, {"g"}}},
      {"dg.conv %a, %b {strides = array<i64: 1, 2, 1>}", {{"n c 3 4 3"}, {"o c 2 2 2"}}},
      {"dg.conv_input_grad %a, %b {input_size = array<i64: 6>}", {{"n o 4"}, {"o c 3"}}},
      {"dg.conv_input_grad %a, %b {input_size = array<i64: 6, 5>, strides = array<i64: 2, 1>, padding = array<i64: 1, "
       "0, "
       "0, 2>, groups = $g : i64}",
       {{"n g*o 3 5"}, {"g*o c 3 3"}}},
      {"dg.conv_input_grad %a, %b {input_size = array<i64: 3, 4, 3>, strides = array<i64: 1, 2, 1>}",
       {{"n o 2 2 2"}, {"o c 2 2 2"}}},
      {"dg.conv_weight_grad %a, %b {kernel_size = array<i64: 3>}", {{"n o 4"}, {"n c 6"}}},
      {"dg.conv_weight_grad %a, %b {kernel_size = array<i64: 3>, dilation = array<i64: 2>, groups = $g : i64}",
       {{"n g*o 3"}, {"n g*c 7"}}},
      {"dg.conv_transpose %a, %b", {{"n c 4"}, {"c o 3"}}},
      {"dg.conv_transpose %a, %b, %c {strides = array<i64: 2, 3>, padding = array<i64: 1, 0>, output_padding = "
       "array<i64: 1, 2>}",
       {{"n c 3 2"}, {"c o 3 2"}, {"o"}}},
      {"dg.conv_transpose %a, %b {strides = array<i64: 2>, padding = array<i64: 0, 1>, dilation = array<i64: 2>, "
       "groups "
       "= $g : i64}",
       {{"n g*c 3"}, {"g*c o 3"}}},
  };
}

} // namespace dg::ir::test
