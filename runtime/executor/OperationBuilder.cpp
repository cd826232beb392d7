// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/OperationBuilder.h"

#include "runtime/plan/TaskTraits.h"

#include <algorithm>

namespace dg {

using plan::Task;
using plan::Value;

Group groupOf(const ExecutorRank &context, plan::Axis axis) {
  Group group;
  group.ranks = context.plan.mesh.groupOf(context.rank, axis);
  group.self = size_t(std::find(group.ranks.begin(), group.ranks.end(), context.rank) - group.ranks.begin());
  return group;
}

/// Bits 44-47 program, 40-43 what the channel counts (0: sends, else the mesh axis), 16-39 channel, 0-15 the
/// collective's own.
static Result<uint64_t> tagOf(const ExecutorRank &context, size_t program, const Task &task) {
  const uint64_t space = isCollective(task.kind()) ? uint64_t(*axisOf(task)) + 1 : 0, channel = channelOf(task);
  if (program >= 16 || channel >= 1u << 24)
    return Status::error(ErrorKind::badInput,
                         "task '{}' of program {} has channel {}; a job may have 16 programs and 2^24 channels",
                         task.name, program, channel);
  return uint64_t(program) << 44 | space << 40 | channel << 16;
}

static size_t numElements(const Value &value) {
  size_t count = 1;
  for (int64_t size : value.shape)
    count *= size_t(size);
  return count;
}

/// The shard as rows of one block each; the whole must have exactly `groupSize` blocks to a row.
static Result<BlockShape> blocksOf(const Task &task, const Value &shard, const Value &whole, size_t groupSize) {
  const int64_t dim = dimOf(task);
  if (dim < 0 || size_t(dim) >= shard.shape.size())
    return Status::error(ErrorKind::badInput, "task '{}' ({}) cuts dimension {} of '{}', which has {}", task.name,
                         task.source, dim, shard.name, shard.shape.size());
  BlockShape blocks;
  for (size_t d = 0; d < shard.shape.size(); ++d)
    (d < size_t(dim) ? blocks.outer : blocks.inner) *= size_t(shard.shape[d]);
  if (shard.dtype != whole.dtype || numElements(shard) * groupSize != numElements(whole))
    return Status::error(ErrorKind::badInput,
                         "task '{}' ({}): {} shards of '{}' with {} elements do not make up '{}' with {}", task.name,
                         task.source, groupSize, shard.name, numElements(shard), whole.name, numElements(whole));
  return blocks;
}

Result<std::vector<Operation *>> makeOperations(const ExecutorRank &context, size_t program, plan::TaskId id,
                                                uint32_t rows) {
  const Task &task = context.plan.tasks[id];
  auto value = [&](plan::ValueId value) -> const Value & { return context.plan.values[value]; };
  if (!context.transport)
    return Status::error(ErrorKind::usage, "task '{}' ({}, {}) talks to another rank, but this rank has no transport",
                         task.name, task.op, task.source);
  Transport &transport = *context.transport;
  Result<uint64_t> tag = tagOf(context, program, task);
  if (!tag)
    return tag.status();

  std::vector<Operation *> made;
  int64_t firstPeer = 0;
  std::string peers;
  auto add = [&](std::unique_ptr<Communication> communication) {
    made.push_back(context.communications.add(id, std::move(communication), firstPeer, peers));
  };

  if (!isCollective(task.kind())) {
    const uint32_t peerStage = peerStageOf(task);
    if (peerStage >= context.plan.numStages() || peerStage == uint32_t(context.at.pipe))
      return Status::error(ErrorKind::badInput, "task '{}' ({}) of stage {} has peer stage {} of {}", task.name,
                           task.source, context.at.pipe, peerStage, context.plan.numStages());
    plan::Coordinates other = context.at;
    other.pipe = peerStage;
    int64_t peer = context.plan.mesh.rankOf(other);
    firstPeer = peer;
    peers = fmt::format("rank {}", peer);
    const uint64_t bytes = movedBytes(context.plan, task);
    if (task.as<plan::Receive>())
      add(makeReceive(transport, peer, *tag, bytes));
    else
      for (uint32_t row = 0; row < rows; ++row)
        add(makeSend(transport, peer, *tag, bytes));
    return made;
  }

  Group group = groupOf(context, *axisOf(task));
  std::vector<int64_t> others = group.ranks;
  std::erase(others, context.rank);
  firstPeer = others.empty() ? context.rank : others[0];
  peers =
      others.size() == 1 ? fmt::format("rank {}", others[0]) : fmt::format("one of ranks {}", fmt::join(others, ", "));
  if (const auto *reduce = task.as<plan::AllReduce>()) {
    const Value &summed = value(reduce->value);
    add(makeAllReduce(transport, group, *tag, summed.dtype, numElements(summed), reduce->algorithm));
  } else if (const auto *gather = task.as<plan::AllGather>()) {
    Result<BlockShape> blocks = blocksOf(task, value(gather->from), value(gather->to), group.ranks.size());
    if (!blocks)
      return blocks.status();
    add(makeAllGather(transport, group, *tag, value(gather->from).dtype, *blocks));
  } else if (const auto *scatter = task.as<plan::ReduceScatter>()) {
    Result<BlockShape> blocks = blocksOf(task, value(scatter->to), value(scatter->from), group.ranks.size());
    if (!blocks)
      return blocks.status();
    add(makeReduceScatter(transport, group, *tag, value(scatter->from).dtype, *blocks));
  }
  return made;
}

} // namespace dg
