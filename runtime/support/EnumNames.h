// SPDX-License-Identifier: Apache-2.0
// Names of enumerators, for files and messages. They are given once, beside the enumeration and in its order, by a
// function of its namespace:
//
//   enum class Axis : uint8_t { pipe, data, tensor };
//   constexpr auto enumNames(Axis) { return std::array{"pipe", "data", "tensor"}; }
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

namespace dg {

template <typename Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires(Enum value) { enumNames(value); };

template <NamedEnum Enum> const char *nameOf(Enum value) {
  static constexpr auto names = enumNames(Enum());
  return names[size_t(value)];
}

/// Every enumerator, in order.
template <NamedEnum Enum> constexpr auto allOf() {
  std::array<Enum, enumNames(Enum()).size()> all{};
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = Enum(i);
  return all;
}

/// Nothing if no enumerator has that name.
template <NamedEnum Enum> std::optional<Enum> enumNamed(std::string_view name) {
  for (Enum value : allOf<Enum>())
    if (name == nameOf(value))
      return value;
  return std::nullopt;
}

} // namespace dg
