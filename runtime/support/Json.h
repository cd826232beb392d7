// SPDX-License-Identifier: Apache-2.0
// The one way in which JSON from outside is read: bounded in bytes and in depth before a document is built of it, for
// documents are copied, compared and freed by recursion. tools/check-layers finds a second way.
#pragma once

#include "runtime/support/Status.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>

namespace dg {

struct JsonBounds {
  size_t bytes = size_t(4) << 30; ///< a trace has hundreds of megabytes
  size_t depth = 64;              ///< what dgc and dgrun write is less than 16 deep
};

/// Whether the text is within the bounds, without building anything; brackets inside strings do not count. Fails with
/// badInput and `file`.
Status checkJsonBounds(std::string_view text, std::string_view file, const JsonBounds &bounds = {});

/// Reads all of the text. `watch` sees the events of nlohmann's parser and says what is kept. Fails with badInput,
/// `file` and where it stops.
template <typename Json = nlohmann::json>
Result<Json> parseJson(std::string_view text, std::string_view file,
                       const typename Json::parser_callback_t &watch = nullptr) {
  DG_RETURN_IF_ERROR(checkJsonBounds(text, file));
  try {
    return Json::parse(text, watch);
  } catch (const typename Json::parse_error &error) {
    return Status::error(ErrorKind::badInput, "{}: not JSON, stopped at byte {} of {}", file,
                         std::min<size_t>(error.byte, text.size()), text.size());
  } catch (const std::exception &error) {
    return Status::error(ErrorKind::badInput, "{}: not readable as JSON: {}", file, error.what());
  }
}

} // namespace dg
