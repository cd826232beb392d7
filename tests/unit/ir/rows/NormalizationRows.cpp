// SPDX-License-Identifier: Apache-2.0
// The rows of NormalizationOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> normalizationRows() {
  return {
      {"dg.softmax %a", {{"n d"}}},
      {"dg.softmax %a {scale = 0.5, causal}", {{"b h t t"}}},
      {"dg.softmax %a {axis = 0}", {{"n d"}}},
      {"dg.softmax %a {axis = -2, scale = 2.0}", {{"b n d"}}},
      {"dg.log_softmax %a {axis = 1}", {{"b n d"}}},
      {"dg.softmax_grad %a, %b {scale = 0.5}", {{"b n d"}, {"b n d", Elements::positive}}},
      {"dg.log_softmax %a", {{"b n d"}}},
      {"dg.log_softmax_grad %a, %b", {{"n d"}, {"n d"}}},
      {"dg.layer_norm %a, %b, %c {axis = 1 : i64}", {{"n 2 3"}, {"2 3"}, {"2 3"}}},
      {"dg.layer_norm %a, %b, %c {axis = -3 : i64}", {{"2 1 3"}, {"2 1 3"}, {"2 1 3"}}},
      {"dg.layer_norm %a, %b, %c", {{"b t 7"}, {"7"}, {"7"}}},
      {"dg.layer_norm %a, %b, %c {epsilon = 0.1}", {{"n 4"}, {"4"}, {"4"}}},
      {"dg.layer_norm_grad %a, %b, %c", {{"b t 7"}, {"b t 7"}, {"7"}}, 3},
  };
}

} // namespace dg::ir::test
