// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/rules/Interval.h"

#include <charconv>

namespace dg::session {

Result<Interval> Interval::parse(const char *flag, const std::string &text) {
  int64_t count = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  std::string unit(end, text.data() + text.size());
  Interval interval;
  if (error == std::errc() && count > 0) {
    if (unit == "epochs" || unit == "epoch")
      interval.epochs = count;
    else if (unit == "steps" || unit == "step")
      interval.steps = count;
  }
  if (interval.epochs == 0 && interval.steps == 0)
    return Status::error(ErrorKind::usage, "{} '{}': expected a number and a unit, as 10epochs or 500steps", flag,
                         text);
  return interval;
}

} // namespace dg::session
