// SPDX-License-Identifier: Apache-2.0
// The rows of IndexingOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> indexingRows() {
  return {
      {"dg.embedding %a, %b", {{"v d"}, {"b t", Elements::index, "v"}}},
      {"dg.embedding_grad %a, %b {rows = $v : i64}", {{"b t d"}, {"b t", Elements::index, "v"}}},
      {"dg.pick %a, %b", {{"b t c"}, {"b t", Elements::index, "c"}}},
      {"dg.pick_log_softmax %a, %b", {{"b t c"}, {"b t", Elements::index, "c"}}, 2},
      {"dg.pick_log_softmax_grad %a, %b, %c, %d, %e",
       {{"b t"}, {"b t"}, {"b t c"}, {"b t", Elements::index, "c"}, {"b t"}}},
      {"dg.pick_grad %a, %b {classes = $c : i64}", {{"n"}, {"n", Elements::index, "c"}}},
      {"dg.correct %a, %b", {{"n c"}, {"n", Elements::index, "c"}}},
  };
}

} // namespace dg::ir::test
