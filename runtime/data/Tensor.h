// SPDX-License-Identifier: Apache-2.0
// A tensor as a file holds it: element type, shape and bytes that stay valid as long as the tensor does (mapped or in
// memory).
#pragma once

#include "runtime/support/EnumNames.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dg::data {

/// What data files hold; wider than what plans compute with.
enum class ElementType { boolean, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64 };
int64_t sizeOf(ElementType type);
constexpr auto enumNames(ElementType) {
  return std::array{"bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64"};
}
using dg::nameOf;
bool isFloat(ElementType type);

struct Tensor {
  ElementType type = ElementType::u8;
  std::vector<int64_t> shape;
  const std::byte *data = nullptr;
  std::shared_ptr<const void> owner; ///< keeps `data` alive
};

/// "60000x28x28"; "scalar" for no dimension.
std::string describeShape(const std::vector<int64_t> &shape);
/// Product of the dimensions × elementBytes; nothing if a dimension is negative or the product does not fit 63 bits.
std::optional<int64_t> bytesOf(const std::vector<int64_t> &shape, int64_t elementBytes);

} // namespace dg::data
