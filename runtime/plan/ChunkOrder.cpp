// SPDX-License-Identifier: Apache-2.0
// Reachability as bit rows: a task's ancestors are its dependencies and all of theirs.
#include "runtime/plan/ChunkOrder.h"

namespace dg::plan {

ChunkOrder::ChunkOrder(const Plan &plan, const Chunk &chunk, const std::vector<uint32_t> &positionOf)
    : words((chunk.tasks.size() + 63) / 64), bits(words * chunk.tasks.size()) {
  auto inherit = [&](size_t position, TaskId dependency) {
    size_t from = positionOf[dependency];
    uint64_t *row = &bits[position * words];
    const uint64_t *other = &bits[from * words];
    for (size_t word = 0; word <= from / 64; ++word)
      row[word] |= other[word];
    row[from / 64] |= uint64_t(1) << (from % 64);
  };
  for (size_t position = 0; position < chunk.tasks.size(); ++position) {
    const Task &task = plan.tasks[chunk.tasks[position]];
    for (TaskId dependency : task.deps)
      inherit(position, dependency);
    if (const Finish *finish = task.as<Finish>())
      inherit(position, finish->task);
  }
}

} // namespace dg::plan
