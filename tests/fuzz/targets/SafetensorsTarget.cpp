// SPDX-License-Identifier: Apache-2.0
// Safetensors: a file that reads is laid out again from what was read, and reads as the same.
#include "runtime/package/Safetensors.h"
#include "tests/fuzz/FuzzTarget.h"

#include <cstring>

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  Result<package::Safetensors> read = package::Safetensors::parse(fuzz::bytesOf(data, size), "fuzz");
  if (!read)
    return 0;
  std::vector<package::TensorSpec> specs;
  for (const package::Tensor &tensor : read->tensors()) {
    fuzz::touch(tensor.data);
    fuzz::check(read->find(tensor.name) == &tensor, "a tensor is found by its name");
    specs.push_back(tensor);
  }
  Result<package::SafetensorsLayout> layout = package::layoutSafetensors(specs, read->metadata());
  fuzz::check(bool(layout), "what was read can be written");
  std::string again(layout->fileBytes, '\0');
  std::memcpy(again.data(), layout->header.data(), layout->header.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    const package::Tensor &tensor = read->tensors()[i];
    fuzz::check(layout->sizes[i] == tensor.data.size(), "a tensor keeps its size");
    if (!tensor.data.empty())
      std::memcpy(again.data() + layout->offsets[i], tensor.data.data(), tensor.data.size());
  }
  Result<package::Safetensors> reread =
      package::Safetensors::parse(std::as_bytes(std::span(again.data(), again.size())), "fuzz");
  fuzz::check(bool(reread), "what was written can be read");
  for (const package::Tensor &tensor : read->tensors()) {
    const package::Tensor *found = reread->find(tensor.name);
    fuzz::check(found && found->dtype == tensor.dtype && found->shape == tensor.shape &&
                    std::equal(found->data.begin(), found->data.end(), tensor.data.begin(), tensor.data.end()),
                "a tensor reads as it was");
  }
  return 0;
}
