// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/JsonMutation.h"

#include <cctype>
#include <vector>

namespace dg::fuzz {

namespace {

/// A part of the text: a number, a string with its quotes, or a list or object with its brackets.
struct Part {
  size_t begin, end;
  char kind; ///< '0', '"', 'k' (a key), '[' or '{'
  size_t outer;
};

/// Every part, outer ones before inner ones.
std::vector<Part> partsOf(const std::string &text) {
  std::vector<Part> parts;
  std::vector<size_t> open;
  for (size_t at = 0; at < text.size(); ++at) {
    size_t begin = at, outer = open.empty() ? 0 : open.back();
    char c = text[at];
    if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        at += text[at] == '\\';
      bool isKey = at + 1 < text.size() && text[at + 1] == ':';
      parts.push_back({begin, std::min(at + 1, text.size()), isKey ? 'k' : '"', outer});
    } else if (c == '-' || std::isdigit(static_cast<unsigned char>(c))) {
      while (at + 1 < text.size() && std::string_view("+-.eE0123456789").find(text[at + 1]) != std::string_view::npos)
        ++at;
      parts.push_back({begin, at + 1, '0', outer});
    } else if (c == '[' || c == '{') {
      open.push_back(parts.size());
      parts.push_back({begin, text.size(), c, outer});
    } else if ((c == ']' || c == '}') && !open.empty()) {
      parts[open.back()].end = at + 1;
      open.pop_back();
    }
  }
  return parts;
}

std::string textOf(const std::string &text, const Part &part) { return text.substr(part.begin, part.end - part.begin); }

/// Another part of the same kind, if one is found soon.
const Part &another(const std::vector<Part> &parts, const Part &part, Random &random) {
  for (int tries = 0; tries < 20; ++tries)
    if (const Part &other = random.oneOf(parts); other.kind == part.kind)
      return other;
  return part;
}

std::string otherNumber(const std::string &text, Random &random) {
  if (random.oneIn(4))
    return std::to_string(strangeNumber(random));
  if (text.find_first_of(".eE") != std::string::npos)
    return random.oneIn(8) ? "1e308" : text + "1";
  uint64_t number = std::strtoull(text.c_str(), nullptr, 10);
  static constexpr uint64_t steps[] = {1, UINT64_MAX, 64, 8}; // the second wraps: one less
  return std::to_string(number + random.oneOf(steps));
}

/// The entry of a list around `part`, with the comma that goes with it; nothing if it is in none.
bool widenToEntry(const std::string &text, const std::vector<Part> &parts, Part &part) {
  if (part.begin == 0 || parts[part.outer].kind != '[')
    return false;
  if (part.end < text.size() && text[part.end] == ',')
    ++part.end;
  else if (text[part.begin - 1] == ',')
    --part.begin;
  return true;
}

} // namespace

std::string mutateJson(std::string text, Random &random) {
  for (size_t times = 1 + random.below(4); times > 0; --times) {
    std::vector<Part> parts = partsOf(text);
    if (parts.empty())
      return text;
    Part part = random.oneOf(parts);
    const Part &other = another(parts, part, random);
    if (part.kind == 'k' && !random.oneIn(20))
      continue;
    if (part.kind == '0' && random.oneIn(2)) {
      text.replace(part.begin, part.end - part.begin, otherNumber(textOf(text, part), random));
    } else if (random.oneIn(3) && widenToEntry(text, parts, part)) {
      if (random.oneIn(2))
        text.erase(part.begin, part.end - part.begin);
      else
        text.insert(part.begin, textOf(text, part));
    } else if (random.oneIn(2) && part.end <= other.begin) { // swapped; the later one first, so that places stay
      std::string first = textOf(text, part), second = textOf(text, other);
      text.replace(other.begin, other.end - other.begin, first);
      text.replace(part.begin, part.end - part.begin, second);
    } else {
      text.replace(part.begin, part.end - part.begin, textOf(text, other));
    }
  }
  return text;
}

} // namespace dg::fuzz
