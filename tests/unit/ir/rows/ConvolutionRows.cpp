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
  };
}

} // namespace dg::ir::test
