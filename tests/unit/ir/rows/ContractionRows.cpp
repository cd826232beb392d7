// SPDX-License-Identifier: Apache-2.0
// The rows of ContractionOps.td, and the product of BlockedOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> contractionRows() {
  return {
      {"dg.matmul %a, %b", {{"m k"}, {"k n"}}},
      {"dg.matmul %a, %b {transpose_lhs}", {{"k m"}, {"k n"}}},
      {"dg.matmul %a, %b {transpose_rhs}", {{"m k"}, {"n k"}}},
      {"dg.matmul %a, %b {transpose_lhs, transpose_rhs}", {{"k m"}, {"n k"}}},
      {"dg.matmul %a, %b", {{"b h m k"}, {"b h k n"}}},
      {"dg.matmul %a, %b {transpose_lhs}", {{"b k m"}, {"b k n"}}},
      {"dg.matmul %a, %b {transpose_rhs}", {{"b m k"}, {"b n k"}}},
      {"dg.matmul %a, %b", {{"k"}, {"k n"}}},
      {"dg.matmul %a, %b", {{"b m k"}, {"k"}}},
      {"dg.matmul %a, %b", {{"k"}, {"k"}}},
      {"dg.matmul %a, %b", {{"b h m k"}, {"k n"}}},
      {"dg.matmul %a, %b {transpose_lhs}", {{"b k m"}, {"h b k n"}}},
      {"dg.matmul %a, %b {transpose_rhs}", {{"b 1 m k"}, {"h n k"}}},
      {"dg.panel_product %a, %b {columns = 37 : i64}", {{"m k"}, {"2 k 32"}}},
      {"dg.linear %a, %b", {{"n i"}, {"o i"}}},
      {"dg.linear %a, %b, %c", {{"n i"}, {"o i"}, {"o"}}},
      {"dg.linear %a, %b, %c", {{"b t i"}, {"o i"}, {"o"}}},
  };
}

} // namespace dg::ir::test
