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
  };
}

} // namespace dg::ir::test
