// SPDX-License-Identifier: Apache-2.0
// IDX, plain and gzip.
#include "runtime/data/format/TensorFiles.h"
#include "tests/fuzz/FuzzTarget.h"

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  Result<data::Tensor> tensor = data::readIdx("fuzz", fuzz::bytesOf(data, size), nullptr);
  if (!tensor)
    return 0;
  auto bytes = data::bytesOf(tensor->shape, plan::sizeOf(tensor->type));
  fuzz::check(bytes.has_value(), "the size of a tensor that reads can be counted");
  fuzz::touch({tensor->data, size_t(*bytes)});
  return 0;
}
