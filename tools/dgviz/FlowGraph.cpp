// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/FlowGraph.h"
#include "tools/dgviz/facts/PlanNumbers.h"

#include <map>
#include <set>
#include <tuple>

namespace dg::viz {

using namespace dg::plan;

bool isCommunication(TaskKind kind) {
  return isCollective(kind) || kind == TaskKind::send || kind == TaskKind::receive;
}

std::vector<ChunkId> chunksOf(const Plan &plan, const Program &program) {
  std::set<std::tuple<Phase, uint32_t, ChunkId>> sorted;
  for (const std::vector<Action> &actions : program.actions)
    for (const Action &action : actions)
      sorted.insert({plan.chunks[action.chunk].phase, plan.chunks[action.chunk].stage, action.chunk});
  std::vector<ChunkId> chunks;
  for (const auto &[phase, stage, chunk] : sorted)
    chunks.push_back(chunk);
  return chunks;
}

namespace {

class FlowBuilder {
public:
  FlowBuilder(const Plan &plan, const Program &program)
      : plan(plan), program(program), nodeOf(plan.tasks.size(), noId) {}

  FlowGraph build() {
    for (ChunkId id : chunksOf(plan, program))
      for (TaskId task : plan.chunks[id].tasks)
        addTask(plan.chunks[id], task);
    for (const auto &[channel, send] : sends)
      if (auto receive = receives.find(channel); receive != receives.end())
        connect(send, receive->second, plan.values[plan.tasks[send].buffers[0]].bytes, "send · pipe");
    for (auto &[ends, edge] : edges)
      graph.edges.push_back(std::move(edge));
    return std::move(graph);
  }

private:
  using Place = std::tuple<uint32_t, uint64_t, uint64_t>;

  void addTask(const Chunk &chunk, TaskId id) {
    const Task &task = plan.tasks[id];
    if (task.kind == TaskKind::finish) {
      nodeOf[id] = nodeOf[task.finishes];
    } else if (chunk.phase != Phase::begin) {
      nodeOf[id] = uint32_t(graph.nodes.size());
      graph.nodes.push_back({task.name, chunk.phase, chunk.stage, id});
    }
    for (ValueId value : task.reads) {
      auto writer = writers.find(placeOf(value));
      if (writer == writers.end())
        continue;
      const Task &from = plan.tasks[writer->second];
      const Task &start = from.kind == TaskKind::finish ? plan.tasks[from.finishes] : from;
      connect(writer->second, id, plan.values[value].bytes,
              isCollective(start.kind) ? fmt::format("{} · {}", kindName(start.kind), start.axis) : "");
    }
    for (ValueId value : task.writes)
      writers[placeOf(value)] = id;
    if (task.kind == TaskKind::send)
      sends[task.channel] = id;
    if (task.kind == TaskKind::receive)
      receives[task.channel] = id;
  }

  Place placeOf(ValueId id) const {
    const Value &value = plan.values[id];
    return {value.stage, value.offset, value.bytes};
  }

  void connect(TaskId from, TaskId to, uint64_t bytes, const std::string &route) {
    uint32_t a = nodeOf[from], b = nodeOf[to];
    if (a == noId || b == noId || a == b)
      return;
    FlowEdge &edge = edges.try_emplace({a, b}, FlowEdge{a, b, 0, route}).first->second;
    edge.bytes += bytes;
  }

  const Plan &plan;
  const Program &program;
  FlowGraph graph;
  std::vector<uint32_t> nodeOf; ///< per task
  std::map<Place, TaskId> writers;
  std::map<uint32_t, TaskId> sends, receives; ///< by channel
  std::map<std::pair<uint32_t, uint32_t>, FlowEdge> edges;
};

} // namespace

FlowGraph flowOf(const Plan &plan, const Program &program) { return FlowBuilder(plan, program).build(); }

} // namespace dg::viz
