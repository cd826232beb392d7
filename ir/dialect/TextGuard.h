// SPDX-License-Identifier: Apache-2.0
// What stands between a stranger's text and MLIR's parser, which calls itself for each bracket and each sign of an
// affine expression, and confuses the names of values in regions of other dialects, and the verifiers of ops, which
// count elements: a text that would overflow a stack or a count, or that cannot be a model at all, reaches neither.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace dg::ir {

/// Why and where a text is refused; the message says what was found and what was expected.
struct TextFault {
  size_t line = 0, column = 0; ///< from 1 on
  std::string message;
};

inline constexpr size_t maxTextBytes = size_t(256) << 20;
inline constexpr size_t maxTextDepth = 256;
inline constexpr size_t maxTensorRank = 32;
/// So few that the elements of a tensor times their bytes, or a sum of many, can be counted in 64 bits.
inline constexpr uint64_t maxTensorElements = uint64_t(1) << 48;

/// The first fault of a text that is to be parsed as a model; nothing if it may be parsed. Linear in the text.
std::optional<TextFault> findTextFault(llvm::StringRef text);

} // namespace dg::ir
