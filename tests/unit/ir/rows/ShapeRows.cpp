// SPDX-License-Identifier: Apache-2.0
// The rows of ShapeOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> shapeRows() {
  return {
      {"dg.reshape %a {shape = array<i64: -1, $d>}", {{"b t d"}}},
      {"dg.reshape %a {shape = array<i64: $b, $t, $h, $d>}", {{"b t h*d"}}},
      {"dg.reshape %a {shape = array<i64: $b, $t, ${h*d}>}", {{"b t h d"}}},
      {"dg.reshape %a {shape = array<i64: 0, -1>}", {{"n 20 4 4"}}},
      {"dg.reshape %a {shape = array<i64: $n, $d>}", {{"n*d"}}},
      {"dg.reshape %a {shape = array<i64: $n, 1, $d>}", {{"n d"}}},
      {"dg.reshape %a {shape = array<i64: 0, 3, 2, $d>}", {{"n 2 3 d"}}},
      {"dg.reshape %a {shape = array<i64: 0, 4, 6, $d>}", {{"n 6 4 d"}}},
      {"dg.reshape %a {shape = array<i64: $d>}", {{"1 d 1"}}},
      {"dg.transpose %a {permutation = array<i64: 0, 2, 1, 3>}", {{"b t h d"}}},
      {"dg.transpose %a {permutation = array<i64: 2, 0, 1>}", {{"b t d"}}},
      {"dg.expand %a {shape = array<i64: $n, $d>}", {{"d"}}},
      {"dg.expand %a {shape = array<i64: $n, $m, $d>}", {{"n 1 d"}}},
      {"dg.expand %a {shape = array<i64: $n>}", {{""}}},
      {"dg.reduce_sum %a {dims = array<i64: 0>}", {{"n d"}}},
      {"dg.reduce_sum %a {dims = array<i64: 0, 2>, keep}", {{"n m d"}}},
      {"dg.reduce_sum %a {dims = array<i64: 1>}", {{"n m d"}}},
  };
}

} // namespace dg::ir::test
