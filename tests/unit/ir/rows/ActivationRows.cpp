// SPDX-License-Identifier: Apache-2.0
// The rows of ActivationOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> activationRows() {
  return {
      {"dg.hard_sigmoid %a {alpha = 0.9, beta = 0.4}", {{"n d"}}},
      {"dg.hard_swish %a", {{"n d"}}},
      {"dg.silu %a", {{"n d"}}},
      {"dg.softsign %a", {{"n d"}}},
      {"dg.elu %a {alpha = 1.5}", {{"n d"}}},
      {"dg.selu %a", {{"n d"}}},
      {"dg.celu %a {alpha = 2.0}", {{"n d"}}},
      {"dg.leaky_relu %a {alpha = 0.1}", {{"n d"}}},
      {"dg.thresholded_relu %a {alpha = 0.5}", {{"n d"}}},
      {"dg.mish %a", {{"n d"}}},
      {"dg.gelu_erf %a", {{"n d"}}},
      {"dg.shrink %a {bias = 0.25, lambd = 0.5}", {{"n d"}}},
      {"dg.prelu %a, %b", {{"n c d"}, {"c 1"}}},
  };
}

} // namespace dg::ir::test
