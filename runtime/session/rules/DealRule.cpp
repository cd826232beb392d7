// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/rules/DealRule.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace dg::session {

static std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t end = 0; end != text.npos; text.remove_prefix(end == text.npos ? 0 : end + 1))
    parts.push_back(text.substr(0, end = text.find(separator)));
  return parts;
}

template <typename Number> static bool readNumber(std::string_view text, Number &number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

Result<DealRule> DealRule::parse(const std::string &text) {
  DealRule rule;
  if (text == "even")
    return rule;
  rule.kind = text == "balanced" ? Kind::balanced : Kind::given;
  if (rule.kind == Kind::balanced)
    return rule;
  bool isRight = true;
  for (std::string_view part : split(text, ',')) {
    auto &[step, shares] = rule.given.emplace_back();
    const bool isFirst = rule.given.size() == 1;
    if (size_t colon = part.find(':'); colon != part.npos) {
      isRight = isRight && readNumber(part.substr(0, colon), step) && step > 0 && !isFirst &&
                step > rule.given[rule.given.size() - 2].first;
      part.remove_prefix(colon + 1);
    } else {
      isRight = isRight && isFirst;
    }
    for (std::string_view count : split(part, '/'))
      isRight = isRight && readNumber(count, shares.emplace_back()) && shares.back() > 0;
  }
  if (isRight)
    return rule;
  return Status::error(ErrorKind::usage,
                       "--deal {}: expected even, balanced, or the micro-batches of each replica, as 3/3/2, or "
                       "3/3/2,120:4/2/2 with others after 120 steps",
                       text);
}

std::string nameOf(const Shares &shares) { return fmt::format("{}", fmt::join(shares, "/")); }

std::string DealRule::describe() const {
  if (kind != Kind::given)
    return kind == Kind::even ? "even" : "balanced";
  std::string text;
  for (const auto &[step, shares] : given)
    text += (text.empty() ? "" : fmt::format(",{}:", step)) + nameOf(shares);
  return text;
}

Status DealRule::check(int64_t replicas, uint32_t microbatches) const {
  for (const auto &[step, shares] : given)
    if (int64_t(shares.size()) != replicas ||
        std::accumulate(shares.begin(), shares.end(), uint64_t(0)) != microbatches)
      return Status::error(
          ErrorKind::usage,
          "--deal {}: found {} micro-batches for {} replica{}; the job has {} for {}: give each of its "
          "replicas a share of them (-n says how many there are)",
          nameOf(shares), std::accumulate(shares.begin(), shares.end(), uint64_t(0)), shares.size(),
          shares.size() == 1 ? "" : "s", microbatches, replicas);
  return Status::ok();
}

const Shares &DealRule::sharesAt(int64_t step) const {
  size_t at = 0;
  while (at + 1 < given.size() && given[at + 1].first <= step)
    ++at;
  return given[at].second;
}

Shares dealBySpeed(uint32_t microbatches, const std::vector<double> &microbatchUs) {
  Shares shares(microbatchUs.size(), 1);
  for (uint32_t dealt = uint32_t(shares.size()); dealt < microbatches; ++dealt) {
    size_t best = 0;
    for (size_t i = 1; i < shares.size(); ++i)
      if ((shares[i] + 1) * microbatchUs[i] < (shares[best] + 1) * microbatchUs[best])
        best = i;
    ++shares[best];
  }
  return shares;
}

bool isWorthIt(const Shares &now, const Shares &next, const std::vector<double> &microbatchUs) {
  auto timeOf = [&](const Shares &shares) {
    double us = 0;
    for (size_t i = 0; i < shares.size(); ++i)
      us = std::max(us, shares[i] * microbatchUs[i]);
    return us;
  };
  constexpr double leastGain = 0.05;
  return timeOf(next) < (1 - leastGain) * timeOf(now);
}

} // namespace dg::session
