// SPDX-License-Identifier: Apache-2.0
// What a chunk is to its schedule, where a stage has several chunks of one phase. A plan does not keep it: its actions
// say which chunk runs when.
#pragma once

#include <cstdint>

namespace dg::plan {

struct ChunkRole {
  uint32_t place = 0; ///< of the stage's parts of the model, in the order in which a micro-batch goes through them
  bool isWeightPart = false; ///< the gradients of weights alone, of a backward pass that was cut in two
};

} // namespace dg::plan
