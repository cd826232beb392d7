// SPDX-License-Identifier: Apache-2.0
// The rows of OrderOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> orderRows() {
  return {
      {"dg.arg_max %a", {{"n d"}}},
      {"dg.arg_max %a {axis = 0, keep, last}", {{"n m d", Elements::index, "3"}}},
      {"dg.arg_min %a {axis = -2}", {{"n m d"}}},
      {"dg.cumsum %a", {{"n d"}}},
      {"dg.cumsum %a {axis = 1, exclusive}", {{"n m d"}}},
      {"dg.cumsum %a {axis = 0, reverse}", {{"n d"}}},
      {"dg.cumsum %a {axis = 1, exclusive, reverse}", {{"n d"}}},
      {"dg.top_k %a {k = 2}", {{"n 5"}}, 2},
      {"dg.top_k %a {k = $m, axis = 1, smallest}", {{"n m d"}}, 2},
      {"dg.top_k_grad %a, %b {size = 5}", {{"n 3"}, {"n 3", Elements::index, "5"}}},
      {"dg.top_k_grad %a, %b {size = 4, axis = 0}", {{"3 d"}, {"3 d", Elements::index, "4"}}},
      {"dg.sort %a {axis = 0}", {{"n d"}}, 2},
      {"dg.sort %a {descending}", {{"n d"}}, 2},
      {"dg.hardmax %a", {{"n d"}}},
      {"dg.hardmax %a {axis = 1}", {{"n m d"}}},
  };
}

} // namespace dg::ir::test
