// SPDX-License-Identifier: Apache-2.0
// JPEG and PNG, of a size that is wanted and of any.
#include "runtime/data/decode/Image.h"
#include "tests/fuzz/FuzzTarget.h"

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  std::vector<std::byte> scratch;
  for (int64_t channels : {1, 3}) {
    data::ImageRequest request{{5, 7, channels}};
    for (bool converts : {false, true}) {
      request.convertsSize = request.convertsChannels = converts;
      std::vector<std::byte> pixels(size_t(request.shape.bytes()));
      if (data::decodeImage(fuzz::bytesOf(data, size), request, pixels, scratch))
        fuzz::touch(pixels);
    }
  }
  return 0;
}
