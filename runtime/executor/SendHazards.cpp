// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/SendHazards.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <numeric>

namespace dg {

using plan::ValueId;

uint32_t periodOf(const plan::Plan &plan, const std::vector<ValueId> &values, uint32_t runs) {
  uint64_t period = 1;
  for (ValueId value : values)
    period = std::min<uint64_t>(std::lcm(period, uint64_t(plan.values[value].slots)), std::max(runs, 1u));
  return uint32_t(period);
}

static uint64_t beginOf(const plan::Value &value, uint64_t run) {
  return value.offset + (value.slots > 1 ? run % value.slots * value.stride : 0);
}

void SendHazards::addSend(ValueId value, const std::vector<Operation *> &operations) {
  for (size_t slot = 0; slot < operations.size(); ++slot) {
    uint64_t begin = beginOf(plan.values[value], slot);
    sends.push_back({begin, begin + plan.values[value].bytes, operations[slot]});
  }
}

std::vector<std::vector<Operation *>> SendHazards::before(const plan::Task &task, uint32_t runs) const {
  std::vector<ValueId> written = plan::writesOf(task);
  std::vector<std::vector<Operation *>> lists(periodOf(plan, written, runs));
  bool hasAny = false;
  for (uint32_t run = 0; run < lists.size(); ++run)
    for (ValueId value : written) {
      uint64_t begin = beginOf(plan.values[value], run), end = begin + plan.values[value].bytes;
      for (const Range &send : sends)
        if (send.begin < end && begin < send.end) {
          lists[run].push_back(send.operation);
          hasAny = true;
        }
    }
  if (!hasAny)
    return {};
  if (std::all_of(lists.begin(), lists.end(), [&](const auto &list) { return list == lists[0]; }))
    lists.resize(1);
  return lists;
}

} // namespace dg
