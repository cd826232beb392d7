// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/Json.h"

namespace dg {

Status checkJsonBounds(std::string_view text, std::string_view file, const JsonBounds &bounds) {
  if (text.size() > bounds.bytes)
    return Status::error(ErrorKind::badInput, "{}: has {} bytes of JSON, expected at most {}", file, text.size(),
                         bounds.bytes);
  size_t depth = 0;
  bool isInString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (isInString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        isInString = false;
    } else if (c == '"') {
      isInString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > bounds.depth)
        return Status::error(ErrorKind::badInput,
                             "{}: JSON is nested more than {} deep at byte {}: no file of dgc or "
                             "dgrun is",
                             file, bounds.depth, i);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return Status::ok();
}

} // namespace dg
