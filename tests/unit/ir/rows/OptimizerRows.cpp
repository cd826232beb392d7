// SPDX-License-Identifier: Apache-2.0
// The rows of OptimizerOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> optimizerRows() {
  return {
      {"dg.sgd %a, %b {weight_decay = 0.1}", {{"o i"}, {"o i"}}},
      {"dg.momentum %a, %b, %c {momentum = 0.9}", {{"o i"}, {"o i"}, {"o i"}}, 2},
      {"dg.momentum %a, %b, %c {momentum = 0.9, nesterov, weight_decay = 0.1}", {{"o"}, {"o"}, {"o"}}, 2},
      {"dg.adam %a, %b, %c, %d", {{"o i"}, {"o i"}, {"o i"}, {"o i", Elements::positive}}, 3},
      {"dg.adam %a, %b, %c, %d {weight_decay = 0.1, decoupled}", {{"o"}, {"o"}, {"o"}, {"o", Elements::positive}}, 3},
  };
}

} // namespace dg::ir::test
