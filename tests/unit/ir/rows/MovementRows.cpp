// SPDX-License-Identifier: Apache-2.0
// The rows of MovementOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> movementRows() {
  return {
      {"dg.slice %a {starts = array<i64: 0, 1>, sizes = array<i64: -1, 2>}", {{"n 4"}}},
      {"dg.slice %a {starts = array<i64: 1, 6, 0>, sizes = array<i64: 2, -1, -1>, steps = array<i64: 2, -3, 1>}",
       {{"5 7 d"}}},
      {"dg.slice %a {starts = array<i64: 0, 3>, sizes = array<i64: -1, 0>}", {{"n 4"}}},
      {"dg.pad_constant %a {low = array<i64: 0, 1>, high = array<i64: 0, 2>}", {{"n d"}}},
      {"dg.pad_constant %a, %b {low = array<i64: 1, 0, 0>, high = array<i64: 0, 2, 0>}", {{"n m d"}, {""}}},
      {"dg.pad_constant %a, %b {low = array<i64: 2, 0>, high = array<i64: 1, 0>, interior = array<i64: 1, 2>}",
       {{"n d"}, {"1"}}},
      {"dg.pad_constant %a {low = array<i64: 0, 0>, high = array<i64: 0, 1>, interior = array<i64: 0, 1>}", {{"n d"}}},
      {"dg.concat %a {dim = 1 : i64}", {{"n d"}}},
      {"dg.concat %a, %b, %c {dim = 1 : i64}", {{"n d m"}, {"n 1 m"}, {"n k m"}}},
      {"dg.concat %a, %b {dim = 0 : i64}", {{"n d"}, {"m d"}}},
      {"dg.trilu %a", {{"n m d"}}},
      {"dg.trilu %a {upper, diagonal = -1 : i64}", {{"n m d"}}},
      {"dg.iota {dim = 1 : i64, type = tensor<$nx$dxf32>, start = 2.0, step = -0.5}", {}},
  };
}

} // namespace dg::ir::test
