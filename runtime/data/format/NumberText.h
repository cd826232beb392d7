// SPDX-License-Identifier: Apache-2.0
// Numbers that are written as text: cells of tables, labels and lists in archives.
#pragma once

#include "runtime/data/format/Tensor.h"
#include "runtime/support/Status.h"

#include <string_view>

namespace dg::data {

/// What text is read as for an argument: i64 for integers, else f32, or f64 for f64.
DType textType(DType argument);

/// Writes the one number that `text` is, but for spaces around it, as textType says. False unless it is finite, and
/// whole where integers are wanted.
bool readNumber(std::string_view text, DType type, std::byte *to);

/// Takes the next word, between white space, off the front of `text`; empty at the end.
std::string_view takeWord(std::string_view &text);

/// A part of text from outside, short enough for a message.
std::string quoteShort(std::string_view text);

} // namespace dg::data
