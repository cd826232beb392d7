// SPDX-License-Identifier: Apache-2.0
// The C++ type of each DType, for who works on elements, and its name in safetensors files. Apart from Plan.h, which
// only lists them.
#pragma once

#include "runtime/plan/Plan.h"
#include "runtime/support/BFloat16.h"

#include <algorithm>
#include <cctype>
#include <type_traits>

namespace dg::plan {

using Half = _Float16;

template <typename T>
inline constexpr bool isFloatElement =
    std::is_floating_point_v<T> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// The type's name in safetensors files: "F32", "BF16", "BOOL".
inline std::string safetensorsName(DType type) {
  std::string name = type == DType::i1 ? "bool" : nameOf(type);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return char(std::toupper(c)); });
  return name;
}
/// Nothing for a type that no tensor of ours has.
inline std::optional<DType> safetensorsType(std::string_view name) {
  for (DType type : allOf<DType>())
    if (safetensorsName(type) == name)
      return type;
  return std::nullopt;
}

/// What `function` returns for an element, which is zero, of the type.
template <typename Function> auto withElement(DType type, Function &&function) {
  switch (type) {
  case DType::f32:
    return function(float());
  case DType::f64:
    return function(double());
  case DType::bf16:
    return function(BFloat16());
  case DType::f16:
    return function(Half());
  case DType::i64:
    return function(int64_t());
  case DType::i32:
    return function(int32_t());
  case DType::i16:
    return function(int16_t());
  case DType::i8:
    return function(int8_t());
  case DType::u64:
    return function(uint64_t());
  case DType::u32:
    return function(uint32_t());
  case DType::u16:
    return function(uint16_t());
  case DType::u8:
    return function(uint8_t());
  case DType::i1:
    break;
  }
  return function(bool());
}

} // namespace dg::plan
