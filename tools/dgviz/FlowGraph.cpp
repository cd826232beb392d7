// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/FlowGraph.h"

#include "runtime/plan/TaskTraits.h"

#include <map>
#include <set>
#include <tuple>

namespace dg::viz {

using namespace dg::plan;

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
        connect(send, receive->second, movedBytes(plan, plan.tasks[send]), "send · pipe");
    for (auto &[ends, edge] : edges)
      graph.edges.push_back(std::move(edge));
    return std::move(graph);
  }

private:
  using Place = std::tuple<uint32_t, uint64_t, uint64_t>;

  void addTask(const Chunk &chunk, TaskId id) {
    const Task &task = plan.tasks[id];
    if (const Finish *finish = task.as<Finish>()) {
      nodeOf[id] = nodeOf[finish->task];
    } else if (chunk.phase != Phase::begin) {
      nodeOf[id] = uint32_t(graph.nodes.size());
      graph.nodes.push_back({task.name, chunk.phase, chunk.stage, id});
    }
    for (ValueId value : readsOf(startOf(plan, task))) {
      auto writer = writers.find(placeOf(value));
      if (writer == writers.end())
        continue;
      const Task &start = startOf(plan, plan.tasks[writer->second]);
      connect(writer->second, id, plan.values[value].bytes,
              isCollective(start.kind()) ? fmt::format("{} · {}", nameOf(start.kind()), nameOf(*axisOf(start))) : "");
    }
    for (ValueId value : writesOf(startOf(plan, task)))
      writers[placeOf(value)] = id;
    if (const Send *send = task.as<Send>())
      sends[send->channel] = id;
    if (const Receive *receive = task.as<Receive>())
      receives[receive->channel] = id;
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
