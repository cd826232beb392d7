// SPDX-License-Identifier: Apache-2.0
#include "ir/dialect/TextGuard.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace dg::ir {

static constexpr const char *expected = "expected a model in the dg dialect";

/// The first byte that no text has; the size of the text if all is text.
static size_t findNoText(llvm::StringRef bytes) {
  auto *begin = reinterpret_cast<const llvm::UTF8 *>(bytes.begin()), *at = begin;
  llvm::isLegalUTF8String(&at, begin + bytes.size());
  return std::min({bytes.find_if([](unsigned char c) { return c < 9 || (c > 13 && c < 32) || c == 127; }),
                   size_t(at - begin), bytes.size()});
}

/// A word of MLIR that no model has and behind which the parser calls itself without brackets.
static bool isForeign(llvm::StringRef word) { return word == "affine_map" || word == "affine_set"; }

/// A region whose names MLIR's parser does not keep apart from those around it. Where a value was used before under a
/// name that such a region defines, and the region has an error, the parser leaves the use with a value that is gone.
static constexpr const char *openRegion = "found {0}, expected a model in the dg dialect: {1}";

static bool isElementType(llvm::StringRef word) {
  static constexpr llvm::StringLiteral names[] = {"f32", "f64", "f16", "bf16", "i1",   "i8",  "i16",
                                                  "i32", "i64", "ui8", "ui16", "ui32", "ui64"};
  return llvm::is_contained(names, word);
}

/// Without the spaces and comments that the parser skips too.
static llvm::StringRef skipSpace(llvm::StringRef text) {
  for (text = text.ltrim(); text.starts_with("//"); text = text.ltrim())
    text = text.drop_until([](char c) { return c == '\n'; });
  return text;
}

/// What is wrong with the tensor type at the beginning of `type`, of which `rest` follows "tensor<"; "" if nothing is.
/// The verifiers of ops rest on it: they may multiply sizes, and know every element type.
static std::string faultOfTensor(llvm::StringRef type, llvm::StringRef rest) {
  uint64_t elements = 1;
  size_t rank = 0;
  rest = skipSpace(rest);
  while (!rest.empty() && (llvm::isDigit(rest.front()) || rest.front() == '?')) {
    llvm::StringRef digits = rest.take_while([](char c) { return llvm::isDigit(c); });
    uint64_t size = 1;
    bool isCounted = digits.empty() || !digits.getAsInteger(10, size);
    if (!isCounted || __builtin_mul_overflow(elements, std::max<uint64_t>(size, 1), &elements) ||
        elements > maxTensorElements || ++rank > maxTensorRank)
      return llvm::formatv("found {0}>, expected a tensor of at most {1} dimensions and 2^{2} elements",
                           type.take_until([](char c) { return c == '>'; }).take_front(80), maxTensorRank,
                           llvm::Log2_64(maxTensorElements));
    rest = skipSpace(rest.drop_front(std::max<size_t>(digits.size(), 1)));
    if (!rest.consume_front("x"))
      return ""; // the parser says what it expects here
    rest = skipSpace(rest);
  }
  llvm::StringRef element = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
  if (!isElementType(element) && !rest.starts_with("*"))
    return llvm::formatv(
        "found a tensor of '{0}', expected numbers or booleans: f32, f64, f16, bf16, i1, i8, i16, i32, i64, "
        "ui8, ui16, ui32 or ui64",
        element);
  if (skipSpace(rest.drop_front(element.size())).starts_with(","))
    return "found a tensor with an encoding, expected one without";
  return "";
}

/// Looks at words and brackets, outside of texts and comments; leaves the message and its place.
static std::string scan(llvm::StringRef text, size_t &at) {
  size_t depth = 0;
  bool hasValues = false; // some stand before this place
  for (at = 0; at < text.size(); ++at) {
    llvm::StringRef rest = text.drop_front(at);
    char c = rest.front();
    if (rest.starts_with("//")) {
      at += std::min(rest.find('\n'), rest.size() - 1);
    } else if (c == '"') {
      for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
        at += text[at] == '\\';
    } else if (rest.starts_with("->")) {
      ++at;
    } else if (llvm::isAlpha(c) || c == '_') {
      llvm::StringRef word =
          rest.take_while([](char letter) { return llvm::isAlnum(letter) || letter == '_' || letter == '.'; });
      if (isForeign(word))
        return llvm::formatv("found {0}, {1}, which has none", word, expected);
      if (hasValues && (word == "module" || word == "builtin.module"))
        return llvm::formatv(openRegion, "a module behind a value", "a file has one module, around everything");
      llvm::StringRef behind = skipSpace(rest.drop_front(word.size()));
      if (word == "tensor" && behind.consume_front("<"))
        if (std::string fault = faultOfTensor(rest, behind); !fault.empty())
          return fault;
      at += word.size() - 1;
    } else if (llvm::StringRef("%@^").contains(c)) {
      hasValues |= c == '%';
      at += rest.drop_front().take_while([](char letter) { return llvm::isAlnum(letter) || letter == '_'; }).size();
    } else if (llvm::StringRef("([{<").contains(c)) {
      if (c == '(' && skipSpace(rest.drop_front()).starts_with("{"))
        return llvm::formatv(openRegion, "a region in MLIR's generic form",
                             "write the file without --mlir-print-op-generic");
      if (++depth > maxTextDepth)
        return llvm::formatv("found brackets nested more than {0} deep, {1}", maxTextDepth, expected);
    } else if (llvm::StringRef(")]}>").contains(c) && depth > 0) {
      --depth;
    }
  }
  return "";
}

std::optional<TextFault> findTextFault(llvm::StringRef text) {
  if (text.size() > maxTextBytes)
    return TextFault{1, 1,
                     llvm::formatv("found {0} bytes of text, expected at most {1}: keep weights in a safetensors file "
                                   "and give it with --weights",
                                   text.size(), maxTextBytes)};
  size_t at = findNoText(text);
  std::string message;
  if (at < text.size())
    message = llvm::formatv("found byte {0:x}, {1} (.mlir text or .mlirbc)", unsigned(uint8_t(text[at])), expected);
  else
    message = scan(text, at);
  if (message.empty())
    return std::nullopt;
  llvm::StringRef before = text.take_front(at);
  return TextFault{size_t(before.count('\n') + 1), at - (before.rfind('\n') + 1) + 1, message};
}

} // namespace dg::ir
