// SPDX-License-Identifier: Apache-2.0
// The rows of OptimizerOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> optimizerRows() {
  return {
      {"dg.sgd %a, %b {weight_decay = 0.1}", {{"o i"}, {"o i"}}},
      {"dg.sgd %a, %b, %c", {{"o i"}, {"o i"}, {""}}},
      {"dg.momentum %a, %b, %c {momentum = 0.9}", {{"o i"}, {"o i"}, {"o i"}}, 2},
      {"dg.momentum %a, %b, %c {momentum = 0.9, nesterov, weight_decay = 0.1}", {{"o"}, {"o"}, {"o"}}, 2},
      {"dg.adam %a, %b, %c, %d", {{"o i"}, {"o i"}, {"o i"}, {"o i", Elements::positive}}, 3},
      {"dg.adam %a, %b, %c, %d {weight_decay = 0.1, decoupled}", {{"o"}, {"o"}, {"o"}, {"o", Elements::positive}}, 3},
      {"dg.adagrad %a, %b, %c {weight_decay = 0.1, lr_decay = 0.01}",
       {{"o i"}, {"o i"}, {"o i", Elements::positive}},
       2},
      {"dg.rmsprop %a, %b, %c, %d {weight_decay = 0.1, momentum = 0.9}",
       {{"o i"}, {"o i"}, {"o i", Elements::positive}, {"o i"}},
       3},
      {"dg.lion %a, %b, %c {weight_decay = 0.1}", {{"o i"}, {"o i"}, {"o i"}}, 2},
      {"dg.lamb_direction %a, %b, %c, %d {weight_decay = 0.1}",
       {{"o i"}, {"o i"}, {"o i"}, {"o i", Elements::positive}},
       3},
      {"dg.lamb_step %a, %b, %c, %d", {{"o i"}, {"o i"}, {"", Elements::positive}, {"", Elements::positive}}},
      {"dg.clip_gradient %a, %b {max_norm = 0.5}", {{"o i"}, {"", Elements::positive}}},
      {"dg.clip_gradient %a {max_value = 0.5}", {{"o i"}}},
  };
}

} // namespace dg::ir::test
