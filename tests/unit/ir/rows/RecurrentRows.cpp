// SPDX-License-Identifier: Apache-2.0
// The rows of RecurrentOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> recurrentRows() {
  return {
      {"dg.rnn %a, %b, %c", {{"t n i"}, {"1 h i"}, {"1 h h"}}, 2},
      // Products that a gradient keeps rather than computes again.
      {"dg.rnn %a, %b, %c", {{"t n 18"}, {"1 17 18"}, {"1 17 17"}}, 2},
      {"dg.rnn %a, %b, %c, %d, %e, %f {extra = [\"bias\", \"lengths\", \"initial_h\"], direction = \"bidirectional\", "
       "activations "
       "= [\"tanh\", \"relu\"], clip = 0.7}",
       {{"t n i"}, {"2 h i"}, {"2 h h"}, {"2 2*h"}, {"n", Elements::index, "t"}, {"2 n h"}},
       2},
      {"dg.lstm %a, %b, %c {direction = \"reverse\", input_forget}", {{"t n i"}, {"1 4*h i"}, {"1 4*h h"}}, 3},
      {"dg.lstm %a, %b, %c, %d, %e, %f, %g, %h {extra = [\"bias\", \"initial_h\", \"initial_c\", \"peephole\", "
       "\"lengths\"], "
       "direction = \"bidirectional\", clip = 0.9}",
       {{"t n i"}, {"2 4*h i"}, {"2 4*h h"}, {"2 8*h"}, {"2 n h"}, {"2 n h"}, {"2 3*h"}, {"n", Elements::index, "t"}},
       3},
      {"dg.gru %a, %b, %c, %d {extra = [\"bias\"]}", {{"t n i"}, {"1 3*h i"}, {"1 3*h h"}, {"1 6*h"}}, 2},
      {"dg.gru %a, %b, %c, %d, %e {extra = [\"bias\", \"initial_h\"], linear_before_reset, direction = "
       "\"bidirectional\"}",
       {{"t n i"}, {"2 3*h i"}, {"2 3*h h"}, {"2 6*h"}, {"2 n h"}},
       2},
      {"dg.gru %a, %b, %c {activations = [\"softsign\", \"softplus\"], linear_before_reset}",
       {{"t n i"}, {"1 3*h i"}, {"1 3*h h"}},
       2},
  };
}

} // namespace dg::ir::test
