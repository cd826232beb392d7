// SPDX-License-Identifier: Apache-2.0
// Plans stay JSON, and mostly keep their keys: the reader lets enough through that the verifier is tried too.
#include "tests/fuzz/JsonMutation.h"

using namespace dg::fuzz;

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return mutate(data, size, most, seed, [](std::string_view bytes, Random &random) -> std::optional<std::string> {
    return mutateJson(std::string(bytes), random);
  });
}
