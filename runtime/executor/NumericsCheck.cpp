// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/NumericsCheck.h"

#include "runtime/plan/NonFinite.h"

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
  for (plan::ValueId written : task.writes) {
    const plan::Value &value = plan.values[written];
    std::string bad = findBad(value, index);
    if (bad.empty())
      continue;
    std::string origin = "what it read is finite";
    for (plan::ValueId read : task.reads) {
      bool isOverwritten = std::find(task.writes.begin(), task.writes.end(), read) != task.writes.end();
      if (std::string before = isOverwritten ? "" : findBad(plan.values[read], index); !before.empty())
        origin = fmt::format("its input '{}' held {} already", plan.values[read].name, before);
    }
    found = Status::error(ErrorKind::runFailed, "'{}' ({}, {}) made '{}' hold {}, in step {}, micro-batch {}; {}",
                          task.name, task.op, task.source.empty() ? "no source" : task.source, value.name, bad,
                          step.scalars.step, step.microbatch, origin);
    return false;
  }
  return true;
}

} // namespace dg
