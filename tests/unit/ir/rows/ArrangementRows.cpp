// SPDX-License-Identifier: Apache-2.0
// The rows of ArrangementOps.td.
#include "tests/unit/ir/OpTable.h"

namespace dg::ir::test {

std::vector<OpSpec> arrangementRows() {
  return {
      {"dg.pad %a {low = array<i64: 1, -1>, high = array<i64: -1, 2>, value = 3.0}", {{"3 4"}}},
      {"dg.pad %a, %b {low = array<i64: 0, 1>, high = array<i64: 0, 0>}", {{"n d"}, {""}}},
      {"dg.pad %a {low = array<i64: 0, 5>, high = array<i64: 0, 7>, mode = \"reflect\"}", {{"n 3"}}},
      {"dg.pad %a {low = array<i64: 2, -1>, high = array<i64: 1, 3>, mode = \"edge\"}", {{"n 3"}}},
      {"dg.pad %a {low = array<i64: 0, 4>, high = array<i64: 1, 8>, mode = \"wrap\"}", {{"n 3"}}},
      {"dg.tile %a {repeats = array<i64: 2, 1, 3>}", {{"n m d"}}},
      {"dg.flip %a {dims = array<i64: 0, 2>}", {{"n m d"}}},
      {"dg.roll %a {dims = array<i64: 0, 1>, shifts = array<i64: 7, -1>}", {{"n d"}}},
      {"dg.squeeze %a {dims = array<i64: 1, 3>}", {{"n 1 d 1"}}},
      {"dg.unsqueeze %a {dims = array<i64: 0, 2>}", {{"n d"}}},
      {"dg.flatten %a {dim = 2 : i64}", {{"n m d"}}},
      {"dg.depth_to_space %a {block = 2 : i64}", {{"n 4*c h w"}}},
      {"dg.depth_to_space %a {block = 3 : i64, channels_major}", {{"n 9*c h w"}}},
      {"dg.space_to_depth %a {block = 2 : i64}", {{"n c 2*h 2*w"}}},
      {"dg.center_crop_pad %a {dims = array<i64: 1, 2>, sizes = array<i64: 3, 6>}", {{"n 6 3"}}},
      {"dg.eye {type = tensor<$nx$dxf32>, diagonal = 1 : i64}", {}},
  };
}

} // namespace dg::ir::test
