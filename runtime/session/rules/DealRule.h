// SPDX-License-Identifier: Apache-2.0
// --deal: how many micro-batches each replica gets, and since when. What was dealt is text that repeats it.
#pragma once

#include "runtime/support/Status.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dg::session {

/// Micro-batches of each replica.
using Shares = std::vector<uint32_t>;

struct DealRule {
  enum class Kind { even, balanced, given };
  Kind kind = Kind::even;
  /// Given: shares, each from a step of the training on; by step, the first from 0.
  std::vector<std::pair<int64_t, Shares>> given;

  /// "even", "balanced", or shares: "3/3/2" or "3/3/2,120:4/2/2". Fails (usage).
  static Result<DealRule> parse(const std::string &text);
  /// The text that parse reads.
  std::string describe() const;
  /// Whether the shares are of so many replicas and micro-batches.
  Status check(int64_t replicas, uint32_t microbatches) const;
  /// Given: those of the step after `step` steps.
  const Shares &sharesAt(int64_t step) const;

  bool operator==(const DealRule &) const = default;
};

/// "3/3/2"
std::string nameOf(const Shares &shares);

/// The shares that end first where replica i takes `microbatchUs[i]` for each of its micro-batches, at least one. Ties
/// go to the first.
Shares dealBySpeed(uint32_t microbatches, const std::vector<double> &microbatchUs);

/// Whether shares that were measured to take so long are worth to be changed: what is gained must be more than what the
/// next measurement may take back.
bool isWorthIt(const Shares &now, const Shares &next, const std::vector<double> &microbatchUs);

} // namespace dg::session
