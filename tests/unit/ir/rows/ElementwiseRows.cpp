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
      {"dg.pow %a, %b", {{"n d", Elements::positive}, {"d"}}},
      {"dg.mod %a, %b", {{"n d"}, {"d", Elements::positive}}},
      {"dg.mod %a, %b {fmod}", {{"n d"}, {"n d", Elements::positive}}},
      {"dg.min %a, %b", {{"n d"}, {"d"}}},
      {"dg.max %a, %b", {{"1 d"}, {"n 1"}}},
      {"dg.neg %a", {{"n d"}}},
      {"dg.abs %a", {{"n d"}}},
      {"dg.sign %a", {{"n d"}}},
      {"dg.clip %a {min = -0.5, max = 0.5}", {{"n d"}}},
      {"dg.clip %a {max = 0.3}", {{"n d"}}},
      {"dg.scale %a {factor = -1.5}", {{"n d"}}},
      {"dg.relu %a", {{"n d"}}},
      {"dg.relu_grad %a, %b", {{"n d"}, {"n d"}}},
      {"dg.gelu %a", {{"n d"}}},
      {"dg.gelu_grad %a, %b", {{"n d"}, {"n d"}}},
  };
}

} // namespace dg::ir::test
