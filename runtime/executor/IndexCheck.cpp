// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/IndexCheck.h"

#include "runtime/plan/SampleRows.h"

namespace dg {

/// The node whose buffers lie at the address; null where the device calls kernels with tables of its own.
static const Node *findNode(const PreparedProgram &program, uint64_t buffers) {
  auto *address = reinterpret_cast<void *const *>(buffers);
  for (const std::unique_ptr<PreparedChunk> &chunk : program.chunks)
    for (const Part &part : chunk->parts)
      for (const Node &node : part.segment.nodes)
        if (address >= node.buffers && address < node.buffers + size_t(node.period) * node.numBuffers)
          return &node;
  return nullptr;
}

std::string IndexCheck::describeRow(size_t index, const plan::Value &value, uint32_t microbatch,
                                    const SampleAt &sampleAt) const {
  const int64_t rows = plan::sampleRows(plan, plan.programs[index]);
  if (rows == 0 || value.shape.empty() || value.shape[0] % rows != 0)
    return "";
  int64_t elements = 1;
  for (int64_t size : value.shape)
    elements *= size;
  const int64_t row = fault.element / (elements / rows);
  return fmt::format(", row {} of {}{}", row, rows,
                     sampleAt ? fmt::format(", which is sample {} where rows are samples", sampleAt(microbatch, row))
                              : "");
}

Status IndexCheck::failure(size_t index, const PreparedProgram &program, int64_t step, uint32_t microbatch,
                           const SampleAt &sampleAt) const {
  const bool isInside = fault.buffers & 1;
  const Node *node = findNode(program, fault.buffers & ~uint64_t(1));
  const plan::Task *task = node ? &plan.tasks[node->task] : nullptr;
  const auto *kernel = task ? task->as<plan::Kernel>() : nullptr;
  std::string who = "an op", where = fmt::format("at element {} of its indices", fault.element), row;
  if (task)
    who = fmt::format("'{}' ({}, {})", task->name, task->op, task->source.empty() ? "no source" : task->source);
  if (isInside) {
    where += " in its inner graph";
  } else if (kernel && size_t(fault.operand) < kernel->buffers.size()) {
    const plan::Value &value = plan.values[kernel->buffers[size_t(fault.operand)].value];
    where = fmt::format("at element {} of '{}'", fault.element, value.name);
    row = describeRow(index, value, microbatch, sampleAt);
  }
  return Status::error(ErrorKind::badInput,
                       "{} found index {} {}, expected {} to {}: step {}, micro-batch {}{}; correct the data, or what "
                       "the model computes the index from",
                       who, fault.index, where, std::min<int64_t>(fault.places, 0), std::abs(fault.places) - 1, step,
                       microbatch, row);
}

} // namespace dg
