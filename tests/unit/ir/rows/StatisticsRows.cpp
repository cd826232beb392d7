// SPDX-License-Identifier: Apache-2.0
// The rows of StatisticsOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> statisticsRows() {
  return {
      {"dg.moments %a, %b, %c {dims = array<i64: 0, 2, 3>, scale = 0.5}", {{"n c h w"}, {"n 1 1 1"}, {"1 c 1 1"}}, 2},
      {"dg.moments %a, %b, %c {dims = array<i64: 0>}", {{"n c"}, {"n 1"}, {"c"}}, 2},
      {"dg.moments %a, %b, %c {dims = array<i64: 2>}", {{"n c d"}, {""}, {"n c 1"}}, 2},
      {"dg.normalize %a, %b, %c, %d", {{"n c h w"}, {"1 c 1 1"}, {"1 c 1 1"}, {"1 c 1 1"}}},
      {"dg.normalize %a, %b, %c, %d", {{"n c"}, {"n 1"}, {"n 1"}, {"n 1"}}},
      {"dg.normalize_sums %a, %b, %c", {{"n c h w"}, {"n c h w"}, {"1 c 1 1"}}, 2},
      {"dg.normalize_sums %a, %b, %c", {{"n c"}, {"n c"}, {"n 1"}}, 2},
      {"dg.batch_norm %a, %b, %c, %d, %e", {{"n c h w"}, {"c"}, {"c"}, {"c"}, {"c", Elements::positive}}},
      {"dg.batch_norm %a, %b, %c, %d, %e {epsilon = 0.01}", {{"n c"}, {"c"}, {"c"}, {"c"}, {"c", Elements::positive}}},
      {"dg.mean_variance_norm %a {dims = array<i64: 0, 2, 3>}", {{"3 c 2 3"}}},
      {"dg.mean_variance_norm %a {dims = array<i64: 1>, epsilon = 0.1}", {{"n 4"}}},
      {"dg.group_norm %a, %b, %c {groups = $g : i64}", {{"n g*c 2 3"}, {"g*c"}, {"g*c"}}},
      {"dg.instance_norm %a, %b, %c", {{"n c 5"}, {"c"}, {"c"}}},
      {"dg.rms_norm %a, %b", {{"b t 5"}, {"5"}}},
      {"dg.rms_norm %a, %b {epsilon = 0.1}", {{"n 3 2"}, {"3 2"}}},
      {"dg.lrn %a {size = 3, alpha = 0.5, beta = 0.5, bias = 2.0}", {{"n c 2 3"}}},
      {"dg.lrn %a {size = 2, alpha = 0.5}", {{"n 5 4"}}},
  };
}

} // namespace dg::ir::test
