// SPDX-License-Identifier: Apache-2.0
// Files of tokens. The first bytes say what the model asks for: type, shift, and the length of a sample.
#include "runtime/data/format/TensorFiles.h"
#include "tests/fuzz/MemoryFile.h"

#include <cstring>

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  int64_t length = 0;
  constexpr size_t head = 1 + sizeof length;
  if (size < head)
    return 0;
  const plan::DType type = data[0] & 1 ? plan::DType::u32 : plan::DType::u16;
  const int64_t shift = (data[0] >> 1) & 1;
  std::memcpy(&length, data + 1, sizeof length);
  const fuzz::MemoryFile file(fuzz::bytesOf(data + head, size - head));
  auto tensor = data::openTokens(file.path(), type, length, shift);
  if (!tensor)
    return 0;
  fuzz::check(tensor->shape.size() == 2 && tensor->shape[0] >= 1 && tensor->shape[1] == length,
              "there is a sample, as long as the model asks for");
  auto count = data::bytesOf(tensor->shape, plan::sizeOf(tensor->type));
  fuzz::check(count.has_value() && size_t(*count) + size_t(shift * plan::sizeOf(type)) <= size - head,
              "all samples are in the file");
  fuzz::touch({tensor->data, size_t(*count)});
  return 0;
}
