// SPDX-License-Identifier: Apache-2.0
// Exact minimum of a sum of cost tables over few variables each: bucket elimination (Dechter, "Bucket elimination: a
// unifying framework for reasoning", 1999). Where a table would grow too large its bucket is split into mini-buckets
// (Dechter and Rish, 2003): the answer is then a bound and an assignment, and says so.
#pragma once

#include <cstdint>
#include <vector>

namespace dg::partitioner {

/// A cost for each combination of its variables, the last of them moving fastest.
struct CostTable {
  std::vector<uint32_t> variables; ///< increasing
  std::vector<double> costs;
};

struct Elimination {
  double lowerBound = 0; ///< no assignment costs less
  double cost = 0;       ///< of `assignment`; equals lowerBound where isExact
  std::vector<uint32_t> assignment;
  bool isExact = true;
};

/// Minimises over variables with these numbers of values. `fixed` gives a variable one value (UINT32_MAX: free).
/// Deterministic: smallest resulting table first, ties to the smaller variable and the smaller value. Tables of more
/// than `maxTableSize` entries are not made. Requires every table to have the size that its variables say.
Elimination eliminate(const std::vector<uint32_t> &domains, const std::vector<CostTable> &tables,
                      const std::vector<uint32_t> &fixed, uint64_t maxTableSize = 1 << 16);

} // namespace dg::partitioner
