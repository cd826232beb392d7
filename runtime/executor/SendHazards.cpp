// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/SendHazards.h"

#include <algorithm>
#include <numeric>

namespace dg {

using plan::TaskKind;
using plan::ValueId;

static bool contains(const std::vector<ValueId> &values, ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::vector<ValueId> valuesWrittenBy(const plan::Task &task) {
  switch (task.kind) {
  case TaskKind::send:
  case TaskKind::finish:
  case TaskKind::loop:
    return {};
  case TaskKind::kernel: {
    std::vector<ValueId> written = task.writes;
    for (ValueId buffer : task.buffers)
      if (!contains(task.reads, buffer) && !contains(written, buffer))
        written.push_back(buffer);
    return written;
  }
  default:
    return {task.buffers.back()};
  }
}

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
  std::vector<ValueId> written = valuesWrittenBy(task);
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
