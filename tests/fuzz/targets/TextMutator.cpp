// SPDX-License-Identifier: Apache-2.0
// Models stay made of words: numbers become strange, words change places or are replaced by others of the text or of
// the dialect, lines are dropped, doubled and swapped. Bytes changed at random mostly end in the parser's first line.
#include "tests/fuzz/Mutation.h"

#include <cctype>
#include <vector>

using namespace dg::fuzz;

namespace {

struct Part {
  size_t begin, end;
};

/// Words (with their %, @, # or !), numbers and signs.
std::vector<Part> wordsOf(std::string_view text) {
  std::vector<Part> parts;
  auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  for (size_t at = 0; at < text.size(); ++at) {
    if (std::isspace(static_cast<unsigned char>(text[at])))
      continue;
    size_t begin = at;
    bool isNumber = std::isdigit(static_cast<unsigned char>(text[at])) || text[at] == '-';
    while (at + 1 < text.size() && isWord(text[at + 1]) &&
           (!isNumber || std::isdigit(static_cast<unsigned char>(text[at + 1])) || text[at + 1] == '.'))
      ++at;
    parts.push_back({begin, at + 1});
  }
  return parts;
}

std::vector<Part> linesOf(std::string_view text) {
  std::vector<Part> parts;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    parts.push_back({begin, end});
    begin = end;
  }
  return parts;
}

std::string otherWord(std::string_view text, const std::vector<Part> &words, Random &random) {
  static constexpr const char *known[] = {"tensor<?x4xf32>",
                                          "tensor<f32>",
                                          "tensor<0x3xi64>",
                                          "tensor<2x3xi1>",
                                          "tensor<4xbf16>",
                                          "unit",
                                          "true",
                                          "array<i64>",
                                          "array<i64: 0>",
                                          "dense<1> : tensor<2xi32>",
                                          "dense<[]> : tensor<0xf32>",
                                          "[]",
                                          "{}",
                                          "1.0e308",
                                          "0x7FF0000000000000 : f64",
                                          "\"\"",
                                          "!dg.any",
                                          "i64",
                                          "f32",
                                          "dg.return",
                                          "dg.parameter",
                                          "typed"};
  if (random.oneIn(3))
    return random.oneOf(known);
  if (random.oneIn(2))
    return std::to_string(strangeNumber(random));
  Part part = random.oneOf(words);
  return std::string(text.substr(part.begin, part.end - part.begin));
}

/// Drops, doubles, swaps or moves one of the parts.
void rearrange(std::string &text, const std::vector<Part> &parts, Random &random) {
  Part part = random.oneOf(parts), other = random.oneOf(parts);
  std::string content = text.substr(part.begin, part.end - part.begin);
  switch (random.below(4)) {
  case 0:
    text.erase(part.begin, part.end - part.begin);
    break;
  case 1:
    text.insert(other.begin, content + " ");
    break;
  default:
    if (part.end > other.begin)
      std::swap(part, other);
    if (part.end > other.begin)
      return;
    std::string first = text.substr(part.begin, part.end - part.begin),
                second = text.substr(other.begin, other.end - other.begin);
    text.replace(other.begin, other.end - other.begin, first);
    text.replace(part.begin, part.end - part.begin, second);
  }
}

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  return mutate(data, size, most, seed, [](std::string_view bytes, Random &random) -> std::optional<std::string> {
    std::string text(bytes);
    for (size_t times = 1 + random.below(4); times > 0; --times) {
      std::vector<Part> words = wordsOf(text), lines = linesOf(text);
      if (words.empty())
        return std::nullopt;
      if (random.oneIn(4)) {
        rearrange(text, lines, random);
      } else if (random.oneIn(3)) {
        rearrange(text, words, random);
      } else {
        Part part = random.oneOf(words);
        for (int tries = 0; tries < 4 && !std::isdigit(static_cast<unsigned char>(text[part.begin])); ++tries)
          part = random.oneOf(words); // numbers above all
        text.replace(part.begin, part.end - part.begin, otherWord(text, words, random));
      }
    }
    return text;
  });
}
