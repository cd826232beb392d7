// SPDX-License-Identifier: Apache-2.0
// The rows of LossOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> lossRows() {
  return {
      {"dg.mse %a, %b", {{"n d"}, {"n d"}}},
      {"dg.mse %a, %b", {{"n"}, {"n"}}},
      {"dg.mse %a, %b", {{"n c h w"}, {"n c h w"}}},
      {"dg.nll %a, %b", {{"n c"}, {"n", Elements::index, "c"}}},
      {"dg.nll %a, %b", {{"b t c"}, {"b t", Elements::index, "c"}}},
      {"dg.cross_entropy %a, %b", {{"n c"}, {"n", Elements::index, "c"}}},
      {"dg.cross_entropy %a, %b", {{"b t c"}, {"b t", Elements::index, "c"}}},
      {"dg.nll %a, %b, %c {ignore_index = 0}", {{"n c"}, {"n", Elements::index, "c"}, {"c", Elements::positive}}},
      {"dg.cross_entropy %a, %b, %c", {{"n c"}, {"n", Elements::index, "c"}, {"c", Elements::positive}}},
      {"dg.cross_entropy %a, %b {label_smoothing = 0.1}", {{"b t c"}, {"b t", Elements::index, "c"}}},
      {"dg.cross_entropy %a, %b {ignore_index = 1}", {{"b t c"}, {"b t", Elements::index, "c"}}},
      {"dg.cross_entropy %a, %b, %c {ignore_index = 1, label_smoothing = 0.2}",
       {{"b t c"}, {"b t", Elements::index, "c"}, {"c", Elements::positive}}},
      {"dg.l1 %a, %b", {{"n d"}, {"n d"}}},
      {"dg.huber %a, %b {delta = 0.5}", {{"n d"}, {"n d"}}},
      {"dg.smooth_l1 %a, %b {beta = 0.5}", {{"n c h w"}, {"n c h w"}}},
      {"dg.bce_with_logits %a, %b", {{"n d"}, {"n d", Elements::positive}}},
      {"dg.kl_div %a, %b", {{"n d"}, {"n d", Elements::positive}}},
  };
}

} // namespace dg::ir::test
