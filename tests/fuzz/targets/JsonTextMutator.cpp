// SPDX-License-Identifier: Apache-2.0
// JSON stays JSON, and mostly keeps its keys: readers let enough through that what stands behind them is tried too.
#include "tests/fuzz/JsonMutation.h"

using namespace dg::fuzz;

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return mutate(data, size, most, seed, [](std::string_view bytes, Random &random) -> std::optional<std::string> {
    return mutateJson(std::string(bytes), random);
  });
}
