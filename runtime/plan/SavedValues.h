// SPDX-License-Identifier: Apache-2.0
// What a checkpoint holds of a plan, and which rank brings it: the checkpoint writes it, and who plans memory counts
// it.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <vector>

namespace dg::plan {

/// Parameters and states are.
bool isSaved(const Value &value);

/// Of each name the first value.
std::vector<ValueId> savedValues(const Plan &plan);

/// Whether the rank at `at` is the one that writes its shard: of the ranks that hold the same block, the first.
bool writesShard(const Value &value, Coordinates at);

/// Memory of that rank for the copy that a save behind steps makes, besides its arena.
uint64_t saveCopyBytes(const Plan &plan, Coordinates at);

/// The most that a rank of the stage takes for it.
uint64_t saveCopyBytes(const Plan &plan, uint32_t stage);

} // namespace dg::plan
