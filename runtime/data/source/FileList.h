// SPDX-License-Identifier: Apache-2.0
// Many files in a few words: lists, {000..099}, {a,b} and globs.
#pragma once

#include "runtime/support/Status.h"

#include <string>
#include <vector>

namespace dg::data {

/// Cuts a list at its commas, but for those in braces.
std::vector<std::string> splitList(const std::string &list);

/// What each brace stands for, the first one slowest: {8..11} and, with as many digits, {08..11} count; {a,b} lists.
/// Text without braces is itself. Fails (usage) at a brace that is not closed, and above a million names.
Result<std::vector<std::string>> expandBraces(const std::string &text);

/// The files that a pattern with *, ? or [ stands for, in the order of their bytes; of other text, or of a file of just
/// that name, itself. Fails with badInput if there is none.
Result<std::vector<std::string>> expandGlob(const std::string &pattern);

} // namespace dg::data
