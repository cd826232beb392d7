// SPDX-License-Identifier: Apache-2.0
// Grouping and data flow. Flow follows the bytes: a read comes from the last task that wrote the same place, in the
// order begin, forward, backward, update.
#include "tools/dgviz/OpGraph.h"

#include "runtime/plan/PlanFacts.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace dg::viz {

using namespace dg::plan;

namespace {

constexpr uint32_t allParts = UINT32_MAX, noParts = 0;

/// "grad block1.fc.weight/matmul" with 2 parts is "grad block1.fc".
std::string titleOf(const std::string &name, uint32_t parts) {
  std::string title = name.substr(0, name.find('/'));
  size_t end = 0;
  for (uint32_t i = 0; i < parts && end != std::string::npos; ++i)
    end = title.find('.', i == 0 ? 0 : end + 1);
  return title.substr(0, end);
}

/// The chunks of a program without begin, by phase and then by stage.
std::vector<ChunkId> chunksOf(const Plan &plan, const Program &program, bool withBegin) {
  std::set<std::tuple<Phase, uint32_t, ChunkId>> sorted;
  for (const std::vector<Action> &actions : program.actions)
    for (const Action &action : actions) {
      const Chunk &chunk = plan.chunks[action.chunk];
      if (withBegin || chunk.phase != Phase::begin)
        sorted.insert({chunk.phase, chunk.stage, action.chunk});
    }
  std::vector<ChunkId> chunks;
  for (const auto &[phase, stage, chunk] : sorted)
    chunks.push_back(chunk);
  return chunks;
}

bool isCommunication(TaskKind kind) {
  return kind == TaskKind::allReduce || kind == TaskKind::allGather || kind == TaskKind::reduceScatter ||
         kind == TaskKind::broadcast || kind == TaskKind::send || kind == TaskKind::receive;
}

/// The groups with this many dotted parts; `groupOf` gets each task's group.
std::vector<OpGroup> groupBy(const Plan &plan, const Program &program, uint32_t parts, std::vector<uint32_t> &groupOf) {
  std::vector<OpGroup> groups;
  std::map<std::tuple<ChunkId, std::string>, uint32_t> known;
  groupOf.assign(plan.tasks.size(), noId);
  for (ChunkId id : chunksOf(plan, program, false)) {
    const Chunk &chunk = plan.chunks[id];
    for (TaskId taskId : chunk.tasks) {
      const Task &task = plan.tasks[taskId];
      std::string title = parts == noParts ? nameOf(chunk.phase) : titleOf(task.name, parts);
      auto [at, isNew] = known.try_emplace({id, title}, uint32_t(groups.size()));
      if (isNew)
        groups.push_back({title, chunk.stage, chunk.phase, {}, 0, 0, false});
      OpGroup &group = groups[at->second];
      groupOf[taskId] = at->second;
      group.tasks.push_back(taskId);
      group.flops += task.flops;
      group.bytes += task.bytes;
      group.communicates |= isCommunication(task.kind);
    }
  }
  return groups;
}

std::vector<GroupEdge> flowBetween(const Plan &plan, const Program &program, const std::vector<uint32_t> &groupOf) {
  using Place = std::tuple<uint32_t, uint64_t, uint64_t>;
  std::map<std::pair<uint32_t, uint32_t>, GroupEdge> edges;
  auto connect = [&](TaskId from, TaskId to, uint64_t bytes) {
    uint32_t a = groupOf[from], b = groupOf[to];
    if (a == noId || b == noId || a == b)
      return;
    GroupEdge &edge = edges.try_emplace({a, b}, GroupEdge{a, b, 0, false}).first->second;
    edge.bytes += bytes;
    edge.crossesStages |= plan.tasks[from].stage != plan.tasks[to].stage;
  };
  std::map<Place, TaskId> writers;
  std::map<uint32_t, TaskId> sends, receives;
  for (ChunkId chunk : chunksOf(plan, program, true))
    for (TaskId id : plan.chunks[chunk].tasks) {
      const Task &task = plan.tasks[id];
      for (ValueId value : task.reads) {
        const Value &v = plan.values[value];
        auto writer = writers.find({v.stage, v.offset, v.bytes});
        if (writer != writers.end())
          connect(writer->second, id, v.bytes);
      }
      for (ValueId value : task.writes)
        writers[{plan.values[value].stage, plan.values[value].offset, plan.values[value].bytes}] = id;
      if (task.kind == TaskKind::send)
        sends[task.channel] = id;
      if (task.kind == TaskKind::receive)
        receives[task.channel] = id;
    }
  for (const auto &[channel, send] : sends)
    if (receives.contains(channel))
      connect(send, receives[channel], plan.values[plan.tasks[send].buffers[0]].bytes);
  std::vector<GroupEdge> result;
  for (const auto &[ends, edge] : edges)
    result.push_back(edge);
  return result;
}

} // namespace

OpGraph groupOps(const Plan &plan, const Program &program, size_t maxGroups) {
  OpGraph graph;
  std::vector<uint32_t> groupOf;
  for (uint32_t parts : {allParts, 3u, 2u, 1u, noParts}) {
    graph.groups = groupBy(plan, program, parts, groupOf);
    graph.grouping = parts == allParts  ? "by layer"
                     : parts == noParts ? "by stage and phase"
                                        : fmt::format("by the first {} of each name", parts == 1 ? "part" : "parts");
    if (graph.groups.size() <= maxGroups)
      break;
  }
  graph.edges = flowBetween(plan, program, groupOf);
  return graph;
}

} // namespace dg::viz
