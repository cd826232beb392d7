// SPDX-License-Identifier: Apache-2.0
// The rows of ReductionOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> reductionRows() {
  std::vector<OpSpec> rows;
  for (const char *name : {"max", "min", "prod", "mean", "l1", "l2", "sum_square", "log_sum_exp"}) {
    std::string op = std::string("dg.reduce_") + name;
    rows.push_back({op + " %a {dims = array<i64: 1>}", {{"n d"}}});
    rows.push_back({op + " %a {dims = array<i64: 0, 2>, keep}", {{"n m d"}}});
    rows.push_back({op + " %a {dims = array<i64>}", {{"n d"}}});
  }
  rows.push_back({"dg.reduce_log_sum %a {dims = array<i64: 0>}", {{"n d", Elements::positive}}});
  return rows;
}

} // namespace dg::ir::test
