// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/Bracketing.h"

#include <charconv>

namespace dg::plan {

Result<Bracketing> Bracketing::parse(const std::string &name) {
  if (name == "rank-order")
    return Bracketing{};
  if (name == "ring")
    return Bracketing{Kind::ring};
  if (name == "halving")
    return Bracketing{Kind::halving};
  constexpr std::string_view prefix = "two-level:";
  if (name.starts_with(prefix)) {
    size_t block = 0;
    const char *end = name.data() + name.size();
    auto [at, error] = std::from_chars(name.data() + prefix.size(), end, block);
    if (error == std::errc() && at == end && block >= 1 && block <= size_t(1) << 16)
      return Bracketing{Kind::twoLevel, block};
  }
  return Status::error(ErrorKind::badInput,
                       "algorithm '{}', expected rank-order, ring, halving or two-level:RANKS with 1 to 65536 ranks",
                       name);
}

std::string Bracketing::name() const {
  switch (kind) {
  case Kind::rankOrder:
    return "rank-order";
  case Kind::twoLevel:
    return fmt::format("two-level:{}", blockSize);
  case Kind::ring:
    return "ring";
  case Kind::halving:
    return "halving";
  }
  return "?";
}

} // namespace dg::plan
