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
  };
}

} // namespace dg::ir::test
