// SPDX-License-Identifier: Apache-2.0
// Names of parameters by pattern, as a shell writes them.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace dg::passes {

/// True where `pattern`, in which * stands for any text and ? for one character, is the whole name.
inline bool matchesPattern(llvm::StringRef name, llvm::StringRef pattern) {
  // The last * and what it has taken so far: O(name · pattern), without recursion.
  size_t at = 0, in = 0, star = llvm::StringRef::npos, taken = 0;
  while (at < name.size()) {
    if (in < pattern.size() && (pattern[in] == '?' || pattern[in] == name[at]) && pattern[in] != '*') {
      ++at, ++in;
    } else if (in < pattern.size() && pattern[in] == '*') {
      star = in++;
      taken = at;
    } else if (star != llvm::StringRef::npos) {
      in = star + 1;
      at = ++taken;
    } else {
      return false;
    }
  }
  return pattern.drop_front(in).find_first_not_of('*') == llvm::StringRef::npos;
}

} // namespace dg::passes
