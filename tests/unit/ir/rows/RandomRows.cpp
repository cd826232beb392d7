// SPDX-License-Identifier: Apache-2.0
// The rows of RandomOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> randomRows() {
  return {
      {"dg.random_key {stream = 7 : i64}", {}},
      {"dg.random_bits %a, %b {to = f32}", {{"", Elements::index, "1000"}, {"n d", Elements::index, "1000"}}},
      {"dg.random_bits %a, %b {to = f64, word = 3 : i64}", {{"", Elements::index, "9"}, {"n 1", Elements::index, "9"}}},
      {"dg.random_uniform {type = tensor<$nx$dxf32>, low = -1.0, high = 2.0}", {}},
      {"dg.random_uniform %a", {{"n d"}}},
      {"dg.random_normal {type = tensor<$nx$dxf32>, mean = 1.0, deviation = 0.5}", {}},
      {"dg.random_normal %a", {{"n c d"}}},
      {"dg.dropout %a {rate = 0.25}", {{"n d"}}},
  };
}

} // namespace dg::ir::test
