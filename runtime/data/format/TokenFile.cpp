// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/format/SharedMapping.h"
#include "runtime/data/format/TensorFiles.h"

namespace dg::data {

Result<Tensor> openTokens(const std::string &path, DType type, int64_t length, int64_t shift) {
  auto file = mapShared(path);
  if (!file)
    return file.status();
  std::span<const std::byte> bytes = (*file)->bytes();
  int64_t tokenBytes = sizeOf(type);
  if (int64_t(bytes.size()) % tokenBytes != 0)
    return Status::error(ErrorKind::badInput, "{}: {} bytes are not a whole number of {} tokens", path, bytes.size(),
                         nameOf(type));
  int64_t tokens = int64_t(bytes.size()) / tokenBytes;
  int64_t samples = length > 0 ? (tokens - 1) / length : 0;
  if (samples < 1)
    return Status::error(ErrorKind::badInput, "{}: holds {} tokens; one sample of {} needs {}", path, tokens, length,
                         uint64_t(length) + 1);
  return Tensor{type, {samples, length}, bytes.data() + shift * tokenBytes, *file};
}

} // namespace dg::data
