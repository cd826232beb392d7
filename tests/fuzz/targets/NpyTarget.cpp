// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy, and .npz where the bytes are a zip archive.
#include "runtime/data/format/TensorFiles.h"
#include "tests/fuzz/FuzzTarget.h"

using namespace dg;

static void touch(const Result<data::Tensor> &tensor) {
  if (!tensor)
    return;
  auto bytes = data::bytesOf(tensor->shape, plan::sizeOf(tensor->type));
  fuzz::check(bytes.has_value(), "the size of a tensor that reads can be counted");
  fuzz::touch({tensor->data, size_t(*bytes)});
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  std::span<const std::byte> bytes = fuzz::bytesOf(data, size);
  if (size < 2 || data[0] != 'P' || data[1] != 'K') {
    touch(data::readNpy("fuzz", bytes, nullptr));
    return 0;
  }
  touch(data::readNpz("fuzz", bytes, nullptr, ""));
  touch(data::readNpz("fuzz", bytes, nullptr, "x"));
  return 0;
}
