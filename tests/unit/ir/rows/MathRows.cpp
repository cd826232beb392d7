// SPDX-License-Identifier: Apache-2.0
// The rows of MathOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> mathRows() {
  std::vector<OpSpec> rows;
  // Operands are in ±[0.05, 1], positive ones in [0.55, 1.5].
  for (const char *name : {"expm1", "exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh", "erf", "floor",
                           "ceil", "round", "trunc", "sigmoid", "softplus"})
    rows.push_back({std::string("dg.") + name + " %a", {{"n d"}}});
  for (const char *name : {"reciprocal", "sqrt", "rsqrt", "log", "log1p"})
    rows.push_back({std::string("dg.") + name + " %a", {{"n d", Elements::positive}}});
  for (const char *name : {"asin", "acos", "atanh"})
    rows.push_back({std::string("dg.") + name + " %a", {{"n d", Elements::small}}});
  rows.push_back({"dg.acosh %a", {{"n d", Elements::aboveOne}}});
  return rows;
}

} // namespace dg::ir::test
