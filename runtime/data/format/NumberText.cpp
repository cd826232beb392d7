// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/format/NumberText.h"

#include <charconv>
#include <cmath>
#include <cstring>

namespace dg::data {

static constexpr std::string_view space = " \t\r\n";

DType textType(DType argument) {
  return !plan::isFloat(argument) ? DType::i64 : argument == DType::f64 ? DType::f64 : DType::f32;
}

template <typename T> static bool readAs(std::string_view text, std::byte *to) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return false;
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(value))
      return false;
  std::memcpy(to, &value, sizeof value);
  return true;
}

bool readNumber(std::string_view text, DType type, std::byte *to) {
  text = text.substr(std::min(text.find_first_not_of(space), text.size()));
  text = text.substr(0, text.find_last_not_of(space) + 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-')
    text.remove_prefix(1);
  return type == DType::i64   ? readAs<int64_t>(text, to)
         : type == DType::f64 ? readAs<double>(text, to)
                              : readAs<float>(text, to);
}

std::string_view takeWord(std::string_view &text) {
  text = text.substr(std::min(text.find_first_not_of(space), text.size()));
  std::string_view word = text.substr(0, text.find_first_of(space));
  text.remove_prefix(word.size());
  return word;
}

std::string quoteShort(std::string_view text) {
  constexpr size_t most = 40;
  return text.size() <= most ? fmt::format("'{}'", text) : fmt::format("'{}…'", text.substr(0, most));
}

} // namespace dg::data
