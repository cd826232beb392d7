// SPDX-License-Identifier: Apache-2.0
// The header stays JSON and its length right, and mostly the offsets follow the shapes without holes and the data has
// their size: each of these checks alone would stop nearly every change made at random.
#include "runtime/package/Safetensors.h"
#include "tests/fuzz/JsonMutation.h"

#include <nlohmann/json.hpp>

using namespace dg::fuzz;
using Json = nlohmann::ordered_json;

/// Gives every tensor the offsets that its type and shape ask for; returns the bytes of all.
static uint64_t layOut(Json &header) {
  uint64_t at = 0;
  for (auto &[name, tensor] : header.items()) {
    if (name == "__metadata__" || !tensor.is_object() || !tensor.contains("dtype") || !tensor["dtype"].is_string() ||
        !tensor.contains("shape") || !tensor["shape"].is_array())
      continue;
    uint64_t bytes = uint64_t(dg::package::bytesOfDtype(tensor["dtype"].get<std::string>()));
    for (const Json &size : tensor["shape"])
      bytes *= size.is_number_unsigned() ? size.get<uint64_t>() : 1;
    if (bytes > 4096)
      continue;
    tensor["data_offsets"] = {at, at + bytes};
    at += bytes;
  }
  return at;
}

static std::optional<std::string> mutateFile(std::string_view bytes, Random &random) {
  uint64_t headerBytes = 0;
  for (size_t i = 0; i < 8 && i < bytes.size(); ++i)
    headerBytes |= uint64_t(uint8_t(bytes[i])) << (8 * i);
  if (bytes.size() < 8 || headerBytes > bytes.size() - 8)
    return std::nullopt;
  std::string text = mutateJson(std::string(bytes.substr(8, headerBytes)), random), data(bytes.substr(8 + headerBytes));
  Json header = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (header.is_object() && !random.oneIn(4)) {
    static constexpr const char *dtypes[] = {"F64", "I64", "U64", "F32", "I32",  "U32",     "F16",     "BF16",
                                             "I16", "U16", "I8",  "U8",  "BOOL", "F8_E4M3", "F8_E5M2", "C64"};
    auto tensor = std::next(header.begin(), ptrdiff_t(random.below(header.size())));
    if (!header.empty() && tensor->is_object() && tensor->contains("dtype") && random.oneIn(3))
      (*tensor)["dtype"] = random.oneOf(dtypes);
    data.resize(layOut(header), '\1');
    text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  if (random.oneIn(10))
    mutateBytes(text, text.size() + 8);
  std::string file(8, '\0');
  overwrite(file, 0, 8, random.oneIn(20) ? uint64_t(strangeNumber(random)) : text.size());
  return file + text + data;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return mutate(data, size, most, seed, mutateFile);
}
