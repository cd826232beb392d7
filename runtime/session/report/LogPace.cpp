// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/report/LogPace.h"

#include <charconv>
#include <cmath>

namespace dg::session {

Result<LogPace> LogPace::parse(const char *flag, const std::string &text) {
  double count = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  std::string unit(end, text.data() + text.size());
  constexpr double most = 1e9;
  if (error == std::errc() && count > 0 && count <= most) {
    if (unit == "s")
      return LogPace(count, 0);
    if ((unit == "steps" || unit == "step") && count == std::floor(count))
      return LogPace(0, int64_t(count));
  }
  return Status::error(ErrorKind::usage, "{} '{}': expected a number and a unit, as 10s or 100steps", flag, text);
}

} // namespace dg::session
