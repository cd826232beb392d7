// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/OperationBuilder.h"

#include <algorithm>

namespace dg {

using plan::Task;
using plan::TaskKind;
using plan::Value;

bool isCommunication(TaskKind kind) {
  switch (kind) {
  case TaskKind::allReduce:
  case TaskKind::allGather:
  case TaskKind::reduceScatter:
  case TaskKind::broadcast:
  case TaskKind::send:
  case TaskKind::receive:
    return true;
  default:
    return false;
  }
}

Group groupOf(const ExecutorRank &context, const std::string &axis) {
  Group group;
  group.ranks = context.plan.mesh.groupOf(context.rank, axis);
  group.self = size_t(std::find(group.ranks.begin(), group.ranks.end(), context.rank) - group.ranks.begin());
  return group;
}

/// Bits 44-47 program, 40-43 what the channel counts (0: sends, else the mesh axis), 16-39 channel, 0-15 the
/// collective's own.
static Result<uint64_t> tagOf(const ExecutorRank &context, size_t program, const Task &task) {
  uint64_t space = 0;
  if (task.kind != TaskKind::send && task.kind != TaskKind::receive) {
    const auto &axes = context.plan.mesh.axes;
    auto axis = std::find_if(axes.begin(), axes.end(), [&](const auto &each) { return each.name == task.axis; });
    space = uint64_t(axis - axes.begin()) + 1;
  }
  if (program >= 16 || space >= 16 || task.channel >= 1u << 24)
    return Status::error(ErrorKind::badInput,
                         "task '{}' of program {} has channel {}; a job may have 16 programs and 2^24 channels",
                         task.name, program, task.channel);
  return uint64_t(program) << 44 | space << 40 | uint64_t(task.channel) << 16;
}

static size_t numElements(const Value &value) {
  size_t count = 1;
  for (int64_t size : value.shape)
    count *= size_t(size);
  return count;
}

/// As the plan names it; a collective that it does not list is summed in the order of the ranks.
static Result<plan::Bracketing> bracketingOf(const plan::Plan &plan, plan::TaskId task) {
  for (const plan::Collective &collective : plan.collectives)
    if (collective.task == task)
      return plan::Bracketing::parse(collective.algorithm);
  return plan::Bracketing{};
}

/// The shard as rows of one block each; the whole must have exactly `groupSize` blocks to a row.
static Result<BlockShape> blocksOf(const Task &task, const Value &shard, const Value &whole, size_t groupSize) {
  if (task.dim < 0 || size_t(task.dim) >= shard.shape.size())
    return Status::error(ErrorKind::badInput, "task '{}' ({}) cuts dimension {} of '{}', which has {}", task.name,
                         task.source, task.dim, shard.name, shard.shape.size());
  BlockShape blocks;
  for (size_t d = 0; d < shard.shape.size(); ++d)
    (d < size_t(task.dim) ? blocks.outer : blocks.inner) *= size_t(shard.shape[d]);
  if (shard.dtype != whole.dtype || numElements(shard) * groupSize != numElements(whole))
    return Status::error(ErrorKind::badInput,
                         "task '{}' ({}): {} shards of '{}' with {} elements do not make up '{}' with {}", task.name,
                         task.source, groupSize, shard.name, numElements(shard), whole.name, numElements(whole));
  return blocks;
}

Result<std::vector<Operation *>> makeOperations(const ExecutorRank &context, size_t program, plan::TaskId id,
                                                uint32_t rows) {
  const Task &task = context.plan.tasks[id];
  auto value = [&](size_t i) -> const Value & { return context.plan.values[task.buffers[i]]; };
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

  if (task.kind == TaskKind::send || task.kind == TaskKind::receive) {
    if (task.peerStage >= context.plan.numStages() || task.peerStage == uint32_t(context.at.pipe))
      return Status::error(ErrorKind::badInput, "task '{}' ({}) of stage {} has peer stage {} of {}", task.name,
                           task.source, context.at.pipe, task.peerStage, context.plan.numStages());
    int64_t peer = context.plan.mesh.rankOf({int64_t(task.peerStage), context.at.data, context.at.tensor});
    firstPeer = peer;
    peers = fmt::format("rank {}", peer);
    if (task.kind == TaskKind::receive)
      add(makeReceive(transport, peer, *tag, value(0).bytes));
    else
      for (uint32_t row = 0; row < rows; ++row)
        add(makeSend(transport, peer, *tag, value(0).bytes));
    return made;
  }

  Group group = groupOf(context, task.axis);
  std::vector<int64_t> others = group.ranks;
  std::erase(others, context.rank);
  firstPeer = others.empty() ? context.rank : others[0];
  peers =
      others.size() == 1 ? fmt::format("rank {}", others[0]) : fmt::format("one of ranks {}", fmt::join(others, ", "));
  switch (task.kind) {
  case TaskKind::allReduce: {
    Result<plan::Bracketing> bracketing = bracketingOf(context.plan, id);
    if (!bracketing)
      return bracketing.status();
    add(makeAllReduce(transport, group, *tag, value(0).dtype, numElements(value(0)), *bracketing));
    break;
  }
  case TaskKind::broadcast:
    if (task.root >= group.ranks.size())
      return Status::error(ErrorKind::badInput, "task '{}' ({}) broadcasts from {} of {} ranks", task.name, task.source,
                           task.root, group.ranks.size());
    add(makeBroadcast(transport, group, *tag, value(0).dtype, numElements(value(0)), task.root));
    break;
  case TaskKind::allGather:
  case TaskKind::reduceScatter: {
    bool gathers = task.kind == TaskKind::allGather;
    Result<BlockShape> blocks = blocksOf(task, value(gathers ? 0 : 1), value(gathers ? 1 : 0), group.ranks.size());
    if (!blocks)
      return blocks.status();
    add(gathers ? makeAllGather(transport, group, *tag, value(0).dtype, *blocks)
                : makeReduceScatter(transport, group, *tag, value(0).dtype, *blocks));
    break;
  }
  default:
    break;
  }
  return made;
}

} // namespace dg
