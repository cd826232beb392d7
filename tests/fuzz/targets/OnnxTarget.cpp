// SPDX-License-Identifier: Apache-2.0
// ONNX models; external data is looked for in a folder that does not exist.
#include "ir/onnx/ImportOnnx.h"
#include "tests/fuzz/FuzzTarget.h"
#include "tests/fuzz/MlirContext.h"

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  ir::OnnxOptions options;
  options.batch = 2;
  auto model = ir::importOnnx({reinterpret_cast<const char *>(data), size}, "/nowhere/model.onnx", fuzz::freshContext(),
                              options);
  if (failed(model))
    return 0;
  fuzz::check(bool(model->module), "a model that was imported has a module");
  for (const ir::OnnxWeight &weight : model->weights)
    fuzz::touch(std::as_bytes(std::span(weight.bytes.data(), weight.bytes.size())));
  return 0;
}
