// SPDX-License-Identifier: Apache-2.0
// Manifests of checkpoints stay JSON as toJson writes it, with the right hash: without that, each change would end
// there.
#include "runtime/package/ContentHash.h"
#include "tests/fuzz/JsonMutation.h"

#include <nlohmann/json.hpp>

using namespace dg::fuzz;

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return mutate(data, size, most, seed, [](std::string_view bytes, Random &random) -> std::optional<std::string> {
    using nlohmann::json;
    json read = json::parse(mutateJson(std::string(bytes), random), nullptr, /*allow_exceptions=*/false);
    if (!read.is_object())
      return std::nullopt;
    read.erase("manifest_xxh3");
    try {
      read["manifest_xxh3"] = dg::package::hashOf(read.dump());
      return read.dump(2) + "\n";
    } catch (const json::exception &) { // text that is not UTF-8
      return std::nullopt;
    }
  });
}
