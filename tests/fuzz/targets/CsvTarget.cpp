// SPDX-License-Identifier: Apache-2.0
// Tables as text: a column by name, by number, and a run of them.
#include "runtime/data/format/TensorFiles.h"
#include "tests/fuzz/FuzzTarget.h"

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  std::span<const std::byte> bytes = fuzz::bytesOf(data, size);
  for (const char *columns : {"a", "1", "a..b", "0..1"})
    for (plan::DType type : {plan::DType::f32, plan::DType::i64}) {
      auto tensor = data::readCsv("fuzz", bytes, ',', columns, type);
      if (!tensor)
        continue;
      auto count = data::bytesOf(tensor->shape, plan::sizeOf(tensor->type));
      fuzz::check(count.has_value(), "the size of a table that reads can be counted");
      fuzz::touch({tensor->data, size_t(*count)});
    }
  return 0;
}
