// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/format/Tensor.h"

#include <fmt/format.h>

namespace dg::data {

std::string describeShape(const std::vector<int64_t> &shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

std::optional<int64_t> bytesOf(const std::vector<int64_t> &shape, int64_t elementBytes) {
  int64_t bytes = elementBytes;
  for (int64_t dimension : shape)
    if (dimension < 0 || __builtin_mul_overflow(bytes, dimension, &bytes))
      return std::nullopt;
  return bytes;
}

} // namespace dg::data
