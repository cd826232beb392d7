// SPDX-License-Identifier: Apache-2.0
// The rows of ElementwiseOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> elementwiseRows() {
  return {
      {"dg.add %a, %b", {{"n d"}, {"n d"}}},
      {"dg.add %a, %b", {{"n d"}, {"d"}}},
      {"dg.add %a, %b", {{"n 1 d"}, {"m d"}}},
      {"dg.add %a, %b", {{"1 d"}, {"n m d"}}},
      {"dg.sub %a, %b", {{"n d"}, {"n d"}}},
      {"dg.sub %a, %b", {{"d"}, {"n d"}}},
      {"dg.mul %a, %b", {{"n d"}, {"n d"}}},
      {"dg.mul %a, %b", {{"n 1"}, {"1 d"}}},
      {"dg.mul %a, %b", {{"n d"}, {""}}},
      {"dg.div %a, %b", {{"n d"}, {"n d", Elements::positive}}},
      {"dg.div %a, %b", {{"d"}, {"n d", Elements::positive}}},
      {"dg.div %a, %b", {{"n m d"}, {"m 1", Elements::positive}}},
      {"dg.scale %a {factor = -1.5}", {{"n d"}}},
      {"dg.relu %a", {{"n d"}}},
      {"dg.relu_grad %a, %b", {{"n d"}, {"n d"}}},
      {"dg.gelu %a", {{"n d"}}},
      {"dg.gelu_grad %a, %b", {{"n d"}, {"n d"}}},
  };
}

} // namespace dg::ir::test
