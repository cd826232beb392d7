// SPDX-License-Identifier: Apache-2.0
// The rows of GraphOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> graphRows() {
  return {
      {"dg.constant {value = 2.5, type = tensor<$nx$dxf32>}", {}},
      {"dg.literal {value = dense<[[1.0, -2.0], [0.5, 3.0]]> : tensor<2x2xf32>}", {}},
  };
}

} // namespace dg::ir::test
