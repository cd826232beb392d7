// SPDX-License-Identifier: Apache-2.0
// Where a rank's shard lies in the global tensor, as runs of consecutive elements: what writing and reading share.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <vector>

namespace dg::checkpoint {

/// `elements` consecutive elements, at `local` in the shard's buffer and at `global` in the whole tensor.
struct ShardRun {
  int64_t local = 0, global = 0, elements = 0;
  bool operator==(const ShardRun &) const = default;
};

/// The runs of the shard of `value` that the rank at `at` holds, longest possible, in ascending order; none for an
/// empty block.
std::vector<ShardRun> shardRunsOf(const plan::Value &value, const plan::Mesh &mesh, plan::Coordinates at);

} // namespace dg::checkpoint
