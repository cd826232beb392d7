// SPDX-License-Identifier: Apache-2.0
// The rows of GatherOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> gatherRows() {
  return {
      {"dg.gather %a, %b", {{"v d"}, {"b t", Elements::index, "v"}}},
      {"dg.gather %a, %b {dim = 1 : i64}", {{"n v d"}, {"k", Elements::index, "v"}}},
      {"dg.gather %a, %b {dim = 1 : i64}", {{"n v"}, {"", Elements::index, "v"}}},
      {"dg.gather_grad %a, %b {dim = 1 : i64, size = $v : i64}", {{"n k d"}, {"k", Elements::index, "v"}}},
      {"dg.gather_grad %a, %b {size = $v : i64}", {{"b t"}, {"b t", Elements::index, "v"}}},
      {"dg.gather_elements %a, %b {dim = 1 : i64}", {{"n v d"}, {"n k d", Elements::index, "v"}}},
      {"dg.gather_elements %a, %b", {{"v d"}, {"k 1", Elements::index, "v"}}},
      {"dg.scatter_elements %a, %b, %c {dim = 1 : i64}", {{"n v d"}, {"n 1 d", Elements::index, "v"}, {"n 1 d"}}},
      {"dg.scatter_elements %a, %b, %c {reduction = \"add\"}", {{"v d"}, {"k d", Elements::index, "v"}, {"k d"}}},
      {"dg.scatter_elements %a, %b, %c {dim = 1 : i64, reduction = \"mul\"}",
       {{"n v"}, {"n k", Elements::index, "v"}, {"n k", Elements::positive}}},
      {"dg.gather_nd %a, %b", {{"v w d"}, {"k 2", Elements::index, "1"}}},
      {"dg.gather_nd %a, %b", {{"v d e"}, {"k m 1", Elements::index, "v"}}},
      {"dg.gather_nd %a, %b {batch_dims = 1 : i64}", {{"n v d"}, {"n k 1", Elements::index, "v"}}},
      {"dg.scatter_nd %a, %b, %c", {{"v d"}, {"1 1", Elements::index, "v"}, {"1 d"}}},
      {"dg.scatter_nd %a, %b, %c {reduction = \"add\"}", {{"v d e"}, {"k m 1", Elements::index, "v"}, {"k m d e"}}},
      {"dg.scatter_nd %a, %b, %c {batch_dims = 1 : i64, reduction = \"mul\"}",
       {{"n v d"}, {"n k 1", Elements::index, "v"}, {"n k d", Elements::positive}}},
      {"dg.one_hot %a {depth = 5 : i64, dim = 1 : i64, type = f32}", {{"n m", Elements::index, "7"}}},
      {"dg.reverse_sequence %a, %b", {{"t n d"}, {"n", Elements::index, "t"}}},
      {"dg.reverse_sequence %a, %b {batch_dim = 0 : i64}", {{"n t"}, {"n", Elements::index, "t"}}},
  };
}

} // namespace dg::ir::test
