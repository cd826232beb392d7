// SPDX-License-Identifier: Apache-2.0
// The rows of PoolingOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> poolingRows() {
  return {
      {"dg.max_pool2d %a {kernel = array<i64: 2, 2>}", {{"n c 4 5"}}},
      {"dg.max_pool2d %a {kernel = array<i64: 3, 2>, strides = array<i64: 1, 2>}", {{"n c 5 5"}}},
      {"dg.max_pool2d_grad %a, %b {kernel = array<i64: 2, 2>}", {{"n c 2 2"}, {"n c 4 5"}}},
      {"dg.max_pool2d_grad %a, %b {kernel = array<i64: 3, 2>, strides = array<i64: 1, 2>}", {{"n c 3 2"}, {"n c 5 5"}}},
      {"dg.max_pool %a {kernel = array<i64: 3, 2>, strides = array<i64: 2, 1>, padding = array<i64: 1, 1>}",
       {{"n c 5 4"}}},
      {"dg.max_pool %a {kernel = array<i64: 2>, padding = array<i64: 0, 1>, dilation = array<i64: 2>, strides = "
       "array<i64: 1>}",
       {{"n c 7"}}},
      {"dg.max_pool %a {kernel = array<i64: 2, 2, 2>, strides = array<i64: 2, 2, 2>, ceil}", {{"n c 3 4 3"}}},
      {"dg.max_pool %a {kernel = array<i64: 2, 2>}", {{"n c 4 4"}}},
      {"dg.max_pool_indices %a {kernel = array<i64: 3, 2>, strides = array<i64: 2, 1>, padding = array<i64: 1, 1>}",
       {{"n c 5 4"}}},
      {"dg.max_pool_grad %a, %b {kernel = array<i64: 3, 2>, strides = array<i64: 2, 1>, padding = array<i64: 1, 1>}",
       {{"n c 3 5"}, {"n c 5 4"}}},
      {"dg.avg_pool %a {kernel = array<i64: 3, 2>, strides = array<i64: 2, 1>, padding = array<i64: 1, 1>}",
       {{"n c 5 4"}}},
      {"dg.avg_pool %a {kernel = array<i64: 3>, strides = array<i64: 2>, padding = array<i64: 1, 0>, ceil, "
       "count_include_pad}",
       {{"n c 6"}}},
      {"dg.avg_pool %a {kernel = array<i64: 2, 2, 2>, dilation = array<i64: 2, 1, 1>, sum}", {{"n c 4 3 2"}}},
      {"dg.avg_pool_grad %a {input_size = array<i64: 5, 4>, kernel = array<i64: 3, 2>, strides = array<i64: 2, 1>, "
       "padding = array<i64: 1, 1>}",
       {{"n c 3 5"}}},
      {"dg.lp_pool %a {kernel = array<i64: 2, 2>}", {{"n c 4 5"}}},
      {"dg.lp_pool %a {kernel = array<i64: 3>, strides = array<i64: 2>, padding = array<i64: 1>, ceil, p = 3 : i64}",
       {{"n c 6"}}},
      {"dg.lp_pool %a {kernel = array<i64: 2, 2>, p = 1 : i64}", {{"n c 3 4"}}},
      {"dg.global_avg_pool %a", {{"n c 3 4"}}},
      {"dg.global_max_pool %a", {{"n c 3 4"}}},
  };
}

} // namespace dg::ir::test
