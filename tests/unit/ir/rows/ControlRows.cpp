// SPDX-License-Identifier: Apache-2.0
// The rows of ControlOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> controlRows() {
  return {
      {"dg.scan carry(%h = %a) over(%x = %b) with(%w = %c) {\n"
       "    %m = dg.mul %h, %w\n    %s = dg.add %m, %x\n    dg.return %s, %m\n  }",
       {{"n d"}, {"t n d"}, {"d"}},
       2},
      {"dg.scan carry(%h = %a) over(%x = %b) with(%w = %c) attributes {reverse, num_sums = 1 : i64} {\n"
       "    %p = dg.matmul %h, %w\n    %q = dg.scale %p {factor = 0.3}\n    %s = dg.add %q, %x\n"
       "    %o = dg.matmul %x, %h {transpose_lhs}\n    dg.return %s, %s, %o\n  }",
       {{"n d"}, {"t n d"}, {"d d"}},
       3},
      {"dg.scan carry(%g = %a, %h = %b) over(%x = %c) {\n"
       "    %s = dg.mul %g, %x\n    dg.return %h, %s\n  }",
       {{"n"}, {"n"}, {"t n"}},
       2},
      {"dg.scan over(%x = %a, %y = %b) {\n    %s = dg.gelu %x\n    %t = dg.mul %s, %y\n    dg.return %t\n  }",
       {{"t n"}, {"t n"}}},
  };
}

} // namespace dg::ir::test
