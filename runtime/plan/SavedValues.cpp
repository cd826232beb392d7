// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/SavedValues.h"

#include <algorithm>
#include <set>
#include <string>

namespace dg::plan {

bool isSaved(const Value &value) { return value.kind == ValueKind::parameter || value.kind == ValueKind::state; }

std::vector<ValueId> savedValues(const Plan &plan) {
  std::vector<ValueId> ids;
  std::set<std::string> seen;
  for (ValueId id = 0; id < plan.values.size(); ++id)
    if (isSaved(plan.values[id]) && seen.insert(plan.values[id].name).second)
      ids.push_back(id);
  return ids;
}

bool writesShard(const Value &value, Coordinates at) {
  if (int64_t(value.stage) != at.pipe || at.replica != 0)
    return false;
  auto isCutBy = [&](Axis axis) {
    return std::find(value.sharding.begin(), value.sharding.end(), axis) != value.sharding.end();
  };
  return (at.data == 0 || isCutBy(Axis::data)) && (at.tensor == 0 || isCutBy(Axis::tensor));
}

uint64_t saveCopyBytes(const Plan &plan, Coordinates at) {
  uint64_t bytes = 0;
  for (ValueId id : savedValues(plan))
    if (writesShard(plan.values[id], at))
      bytes += plan.values[id].bytes;
  return bytes;
}

uint64_t saveCopyBytes(const Plan &plan, uint32_t stage) {
  return saveCopyBytes(plan, Coordinates{.pipe = int64_t(stage)}); // the first of its ranks writes what is whole too
}

} // namespace dg::plan
