// SPDX-License-Identifier: Apache-2.0
// The rows of LogicOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> logicRows() {
  OperandSpec flag{"n d", Elements::boolean}, row{"d", Elements::boolean}, integer{"n d", Elements::index, "5"};
  return {
      {"dg.compare %a, %b {predicate = \"lt\"}", {{"n d"}, {"d"}}},
      {"dg.compare %a, %b {predicate = \"eq\"}", {integer, {"1 d", Elements::index, "5"}}},
      {"dg.logical_and %a, %b", {flag, row}},
      {"dg.logical_or %a, %b", {flag, flag}},
      {"dg.logical_xor %a, %b", {row, flag}},
      {"dg.logical_not %a", {flag}},
      {"dg.bit_and %a, %b", {integer, integer}},
      {"dg.bit_or %a, %b", {integer, integer}},
      {"dg.bit_xor %a, %b", {integer, integer}},
      {"dg.bit_not %a", {integer}},
      {"dg.shift %a, %b", {integer, integer}},
      {"dg.shift %a, %b {right}", {integer, integer}},
      {"dg.is_nan %a", {{"n d"}}},
      {"dg.is_inf %a {negative = false}", {{"n d"}}},
      {"dg.select %a, %b, %c", {flag, {"n d"}, {"n d"}}},
      {"dg.select %a, %b, %c", {row, {"n 1"}, {""}}},
      {"dg.cast %a {to = f64}", {{"n d"}}},
      {"dg.cast %a {to = f32}", {integer}},
  };
}

} // namespace dg::ir::test
