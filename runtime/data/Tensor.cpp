// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Tensor.h"

#include <fmt/format.h>

namespace dg::data {

int64_t sizeOf(ElementType type) {
  switch (type) {
  case ElementType::boolean:
  case ElementType::u8:
  case ElementType::i8:
    return 1;
  case ElementType::u16:
  case ElementType::i16:
  case ElementType::f16:
  case ElementType::bf16:
    return 2;
  case ElementType::u32:
  case ElementType::i32:
  case ElementType::f32:
    return 4;
  case ElementType::u64:
  case ElementType::i64:
  case ElementType::f64:
    return 8;
  }
  return 0;
}

const char *nameOf(ElementType type) {
  static constexpr const char *names[] = {"bool", "u8",  "i8",  "u16",  "i16", "u32", "i32",
                                          "u64",  "i64", "f16", "bf16", "f32", "f64"};
  return names[size_t(type)];
}

bool isFloat(ElementType type) { return type >= ElementType::f16; }

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
