// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/NumericsCheck.h"

#include "runtime/plan/NonFinite.h"
#include "runtime/plan/TaskTraits.h"

#include <algorithm>

namespace dg {

std::string NumericsCheck::findBad(const plan::Value &value, uint32_t index) const {
  // A kernel's workspace may hold anything; whole numbers are always finite.
  if (!plan::isFloat(value.dtype) || value.kind == plan::ValueKind::scratch)
    return "";
  std::string bad;
  Status read = device.inspect(value, index, [&](std::span<const std::byte> bytes) {
    bad = plan::describeNonFinite(bytes, value.dtype);
    return Status::ok();
  });
  return read ? bad : fmt::format("what cannot be read ({})", read.message());
}

bool NumericsCheck::isSound(const Segment &segment, uint32_t index, const StepContext &step) {
  // What a start writes is there when its finish is done.
  const Node &last = segment.nodes.back();
  if (last.kind == NodeKind::start)
    return true;
  const plan::Task &task = plan.tasks[last.task];
  const std::vector<plan::ValueId> writes = writesOf(startOf(plan, task)), reads = readsOf(startOf(plan, task));
  for (plan::ValueId written : writes) {
    const plan::Value &value = plan.values[written];
    std::string bad = findBad(value, index);
    if (bad.empty())
      continue;
    std::string origin = "what it read is finite";
    for (plan::ValueId read : reads) {
      bool isOverwritten = std::find(writes.begin(), writes.end(), read) != writes.end();
      if (std::string before = isOverwritten ? "" : findBad(plan.values[read], index); !before.empty())
        origin = fmt::format("its input '{}' held {} already", plan.values[read].name, before);
    }
    found = Status::error(ErrorKind::defect, "'{}' ({}, {}) made '{}' hold {}, in step {}, micro-batch {}; {}",
                          task.name, task.op, task.source.empty() ? "no source" : task.source, value.name, bad,
                          step.scalars.step, step.microbatch, origin);
    return false;
  }
  return true;
}

} // namespace dg
