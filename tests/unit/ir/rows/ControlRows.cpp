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
      {"dg.if %a with(%x = %b, %y = %c) {\n    %s = dg.mul %x, %y\n    dg.return %s, %x\n  } else {\n"
       "    %g = dg.gelu %x\n    %t = dg.add %g, %y\n    dg.return %t, %t\n  }",
       {{"", Elements::boolean}, {"n d"}, {"n d"}},
       2},
      {"dg.if %a with(%x = %b, %w = %c) {\n    %s = dg.matmul %x, %w\n    dg.return %s\n  } else {\n"
       "    %z = dg.scale %x {factor = 2.0}\n    dg.return %z\n  }",
       {{"", Elements::boolean}, {"n d"}, {"d d"}}},
      {"dg.while %a carry(%h = %b, %k = %c) with(%w = %d) attributes {max_trips = 3 : i64} {\n"
       "    %m = dg.mul %h, %w\n    %z = dg.scale %k {factor = 0.5}\n    %o = dg.constant {value = 0.1, type = "
       "tensor<f32>}\n"
       "    %g = dg.compare %z, %o {predicate = \"gt\"}\n    dg.return %g, %m, %z\n  }",
       {{"", Elements::boolean}, {"n d"}, {""}, {"d"}},
       2},
      {"dg.while %a carry(%g = %b, %h = %c) attributes {max_trips = 2 : i64} {\n"
       "    %t = dg.constant {value = 1.0, type = tensor<i1>}\n    dg.return %t, %h, %g\n  }",
       {{"", Elements::boolean}, {"n"}, {"n"}},
       2},
  };
}

} // namespace dg::ir::test
