// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/source/FileList.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <glob.h>
#include <memory>
#include <optional>
#include <string_view>
#include <unistd.h>

namespace dg::data {

static constexpr size_t mostNames = 1'000'000;
/// Of all names together.
static constexpr size_t mostBytes = size_t(1) << 26;
/// Of one name; each is opened out by recursion.
static constexpr ptrdiff_t mostBraces = 64;

std::vector<std::string> splitList(const std::string &list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : list) {
    depth += c == '{' ? 1 : c == '}' && depth > 0 ? -1 : 0;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// "000..099" → its numbers, with as many digits; nothing if it is something else.
static std::optional<std::vector<std::string>> countUp(std::string_view text) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos)
    return std::nullopt;
  const std::string_view first = text.substr(0, dots), last = text.substr(dots + 2);
  auto read = [](std::string_view digits) -> std::optional<uint64_t> {
    uint64_t number = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    return error == std::errc() && end == digits.data() + digits.size() ? std::optional(number) : std::nullopt;
  };
  auto from = read(first), to = read(last);
  if (!from || !to || *from > *to || *to - *from >= mostNames)
    return std::nullopt;
  const size_t digits = first.starts_with('0') || first.size() == last.size() ? first.size() : 0;
  std::vector<std::string> names;
  for (uint64_t i = 0; i <= *to - *from; ++i) // the last may be the largest that there is
    names.push_back(fmt::format("{:0{}}", *from + i, digits));
  return names;
}

Result<std::vector<std::string>> expandBraces(const std::string &text) {
  const size_t open = text.find('{');
  if (open == std::string::npos)
    return std::vector<std::string>{text};
  const size_t close = text.find('}', open);
  auto wrong = [&](std::string_view what) {
    return Status::error(ErrorKind::usage, "'{}': {}; expected {{000..099}}, the smaller number first, or {{a,b}}",
                         text, what);
  };
  if (close == std::string::npos || text.find('{', open + 1) < close)
    return wrong("a brace is not closed, or stands in another");
  if (std::count(text.begin(), text.end(), '{') > mostBraces)
    return wrong(fmt::format("more than {} braces", mostBraces));
  const std::string inside = text.substr(open + 1, close - open - 1);
  auto parts = countUp(inside);
  if (!parts && inside.find(',') == std::string::npos)
    return wrong("braces without a range or a list");
  if (!parts)
    parts = splitList(inside);
  auto rests = expandBraces(text.substr(close + 1));
  if (!rests)
    return rests;
  if (parts->size() > mostNames / rests->size())
    return wrong("more than a million files");
  size_t bytes = 0; // each part stands before each rest, and behind what is in front of the brace
  for (const std::string &part : *parts)
    bytes += (open + part.size()) * rests->size();
  for (const std::string &rest : *rests)
    bytes += rest.size() * parts->size();
  if (bytes > mostBytes)
    return wrong("names of more than 64 MB");
  std::vector<std::string> names;
  for (const std::string &part : *parts)
    for (const std::string &rest : *rests)
      names.push_back(text.substr(0, open) + part + rest);
  return names;
}

Result<std::vector<std::string>> expandGlob(const std::string &pattern) {
  if (pattern.find_first_of("*?[") == std::string::npos || ::access(pattern.c_str(), F_OK) == 0)
    return std::vector<std::string>{pattern};
  glob_t found{};
  std::unique_ptr<glob_t, void (*)(glob_t *)> owner(&found, ::globfree);
  const int code = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  if (code != 0 || found.gl_pathc == 0)
    return Status::error(ErrorKind::badInput, "{}: {}", pattern,
                         code == GLOB_NOMATCH ? "no file has such a name; check the path, and quote it so that the "
                                                "shell does not change it"
                                              : "its folder cannot be read");
  std::vector<std::string> names(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::sort(names.begin(), names.end()); // not by the user's language, as glob would
  return names;
}

} // namespace dg::data
