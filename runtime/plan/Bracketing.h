// SPDX-License-Identifier: Apache-2.0
// How the sum of an all-reduce is bracketed. The plan names it for each all-reduce, so that the bits do not depend on
// who started the ranks, on which hosts they stand, or how the data travels.
#pragma once

#include "runtime/support/Status.h"

#include <cstddef>
#include <string>

namespace dg::plan {

/// For a group g0 … gn-1:
///
///   rank-order   ((g0 + g1) + g2) + …
///   two-level:B  b0 + b1 + … in order, bi the sum of the i-th B ranks in order: inside hosts, then between them
///   ring         piece p of n (64-element grain): (((gp+1 + gp+2) + …) + gn-1) + g0 … + gp, as it goes round
///   halving      g0 + gm, g1 + gm+1, … with m half the ranks, then halves again: a balanced tree. Where n is not a
///                power of two, the first pairs of neighbours are added before.
///
/// Except within a rank-order sum, partial sums are rounded to the element type.
struct Bracketing {
  enum class Kind { rankOrder, twoLevel, ring, halving };
  Kind kind = Kind::rankOrder;
  size_t blockSize = 1; ///< two-level

  /// Reads a name of the list above; the message says what was found and expected.
  static Result<Bracketing> parse(const std::string &name);
  /// The name that parse reads.
  std::string name() const;
  bool operator==(const Bracketing &) const = default;
};

} // namespace dg::plan
