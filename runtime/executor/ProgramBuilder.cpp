// SPDX-License-Identifier: Apache-2.0
// Two passes over the chunks that a stage reaches: first the communications, because any task may have to wait for any
// send, then the nodes and their edges.
#include "runtime/executor/ProgramBuilder.h"

#include "runtime/executor/OperationBuilder.h"
#include "runtime/executor/SendHazards.h"
#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>

namespace dg {

using plan::ChunkId;
using plan::Task;
using plan::TaskId;
using plan::Value;

namespace {

class ProgramBuilder {
public:
  ProgramBuilder(const ExecutorRank &context, size_t program)
      : context(context), plan(context.plan), program(program), hazards(context.plan) {}
  Result<PreparedProgram> build();

private:
  /// Where the node of a task stands in the chunk under construction.
  struct Place {
    size_t part;
    uint32_t node;
  };
  struct ChunkState {
    PreparedChunk &chunk;
    uint32_t runs;
    std::map<TaskId, Place> places = {};
    std::map<plan::Axis, Place> lastCollective = {};       ///< by axis
    std::vector<std::pair<uint32_t, uint32_t>> edges = {}; ///< of the open segment
    std::vector<std::vector<void *>> tables = {};          ///< of the open segment: each node's buffers, row by row
  };

  Status reach(ChunkId id, uint32_t runs);
  Status checkTask(const Task &task) const;
  Status prepareOperations(ChunkId id);
  Status buildChunk(ChunkId id, PreparedChunk &chunk);
  Status addTask(ChunkState &state, TaskId id);
  uint32_t addNode(ChunkState &state, Node node, const Task &task, std::vector<void *> table = {});
  std::vector<void *> tableOf(const Node &node, const std::vector<plan::ValueId> &values) const;
  void addEdge(ChunkState &state, const Place &from, uint32_t to) const;
  Place addTwinCopy(ChunkState &state, TaskId id, TaskId communication, bool isInput);
  Place addCopyToTwin(ChunkState &state, TaskId id);
  void resolveKernel(Node &node, const plan::Kernel &kernel);
  Status resolveBlockCopy(Node &node, const Task &task) const;
  void resolveOperations(Node &node, const Task &task, TaskId communication) const;
  Status closeSegment(ChunkState &state);
  size_t countTiles(const PreparedChunk &chunk) const;

  const ExecutorRank &context;
  const plan::Plan &plan;
  const size_t program;
  SendHazards hazards;
  std::map<ChunkId, uint32_t> runsOf; ///< every chunk that the stage reaches, and how many different runs it has
  std::vector<ChunkId> order;         ///< bodies before the chunks that loop over them
  std::set<ChunkId> visiting;
  std::map<TaskId, std::vector<Operation *>> operations;
  std::map<ChunkId, PreparedChunk *> prepared;
  std::set<std::string> missingKernels;
};

Status damaged(const Task &task, const std::string &what) {
  return Status::error(ErrorKind::badInput, "task '{}' ({}, {}) {}; the plan is damaged: compile the job again",
                       task.name, task.op, task.source, what);
}

Status ProgramBuilder::reach(ChunkId id, uint32_t runs) {
  if (id >= plan.chunks.size())
    return Status::error(ErrorKind::badInput, "program '{}' runs chunk {} of {}; compile the job again",
                         nameOf(plan.programs[program].kind), id, plan.chunks.size());
  if (visiting.contains(id))
    return Status::error(ErrorKind::badInput, "chunk {} loops over itself; compile the job again", id);
  auto [known, isNew] = runsOf.try_emplace(id, runs);
  known->second = std::max(known->second, runs);
  if (!isNew)
    return Status::ok();
  visiting.insert(id);
  for (TaskId task : plan.chunks[id].tasks) {
    if (task >= plan.tasks.size())
      return Status::error(ErrorKind::badInput, "chunk {} has task {} of {}; compile the job again", id, task,
                           plan.tasks.size());
    DG_RETURN_IF_ERROR(checkTask(plan.tasks[task]));
    if (const auto *loop = plan.tasks[task].as<plan::Loop>())
      DG_RETURN_IF_ERROR(reach(loop->body, loop->trips));
  }
  visiting.erase(id);
  order.push_back(id);
  return Status::ok();
}

Status ProgramBuilder::checkTask(const Task &task) const {
  for (plan::ValueId id : valuesOf(task))
    if (id >= plan.values.size() || plan.values[id].stage != uint32_t(context.at.pipe))
      return damaged(task, fmt::format("has buffer {}, which is not a value of stage {}", id, context.at.pipe));
  return Status::ok();
}

Status ProgramBuilder::prepareOperations(ChunkId id) {
  std::set<TaskId> finished;
  for (TaskId task : plan.chunks[id].tasks)
    if (const auto *finish = plan.tasks[task].as<plan::Finish>())
      finished.insert(finish->task);
  for (TaskId taskId : plan.chunks[id].tasks) {
    const Task &task = plan.tasks[taskId];
    if (!isCommunication(task.kind()))
      continue;
    if (needsFinish(task.kind()) && !finished.contains(taskId))
      return damaged(task, "has no finish task in its chunk");
    // Alone on its axis, a rank has nobody to talk to: see resolveBlockCopy.
    if (isCollective(task.kind()) && plan.mesh.sizeOf(*axisOf(task)) == 1)
      continue;
    uint32_t rows = periodOf(plan, valuesOf(task), runsOf[id]);
    Result<std::vector<Operation *>> made = makeOperations(context, program, taskId, rows);
    if (!made)
      return made.status();
    operations[taskId] = *made;
    // A send of a twin reads nothing that tasks write.
    if (const auto *send = task.as<plan::Send>(); send && !context.staging.has(taskId))
      hazards.addSend(send->value, *made);
  }
  return Status::ok();
}

void ProgramBuilder::resolveKernel(Node &node, const plan::Kernel &kernel) {
  node.kind = NodeKind::kernel;
  if (!context.device.findKernel(kernel.symbol, node))
    missingKernels.insert(kernel.symbol);
}

/// copy, zero, slice, and what a collective of one rank comes to: a copy, or nothing when it is in place.
Status ProgramBuilder::resolveBlockCopy(Node &node, const Task &task) const {
  node.kind = NodeKind::blockCopy;
  const std::vector<plan::ValueId> values = valuesOf(task);
  const Value &from = plan.values[values.front()], &to = plan.values[values.back()];
  node.copy = {1, 0, 0, 0, to.bytes};
  if (task.as<plan::Zero>())
    return Status::ok();
  if (const auto *slice = task.as<plan::Slice>()) {
    if (from.shape.size() != to.shape.size() || from.dtype != to.dtype || slice->dim < 0 ||
        size_t(slice->dim) >= from.shape.size())
      return damaged(task, fmt::format("cannot cut dimension {} of '{}' over axis '{}'", slice->dim, from.name,
                                       nameOf(slice->axis)));
    const size_t dim = size_t(slice->dim);
    size_t outer = 1, inner = size_t(plan::sizeOf(from.dtype));
    for (size_t d = 0; d < to.shape.size(); ++d) {
      if (d == dim)
        continue;
      if (from.shape[d] != to.shape[d])
        return damaged(task, fmt::format("cuts '{}' into '{}', whose dimension {} differs", from.name, to.name, d));
      (d < dim ? outer : inner) *= size_t(from.shape[d]);
    }
    size_t block = size_t(to.shape[dim]), whole = size_t(from.shape[dim]);
    size_t begin = std::min(groupOf(context, slice->axis).self * block, whole);
    node.copy = {outer, std::min(block, whole - begin) * inner, begin * inner, whole * inner, block * inner};
    return Status::ok();
  }
  if (values.size() == 1) {
    node.copy.rows = 0;
    return Status::ok();
  }
  if (from.bytes != to.bytes)
    return damaged(
        task, fmt::format("copies {} bytes of '{}' to {} bytes of '{}'", from.bytes, from.name, to.bytes, to.name));
  node.copy.copiedBytes = to.bytes;
  return Status::ok();
}

/// start (communication is the task itself) and finish.
void ProgramBuilder::resolveOperations(Node &node, const Task &task, TaskId communication) const {
  node.kind = task.as<plan::Finish>() ? NodeKind::finish : NodeKind::start;
  for (Operation *operation : operations.at(communication))
    node.operations.push_back({operation});
}

uint32_t ProgramBuilder::addNode(ChunkState &state, Node node, const Task &task, std::vector<void *> table) {
  Segment &segment = state.chunk.parts.back().segment;
  segment.nodes.push_back(std::move(node));
  state.tables.push_back(std::move(table));
  // 50 GFLOP/s, 10 GB/s and 100 ns a call: only the order of magnitude matters, it ranks ready nodes.
  double cost = std::max(task.flops / 50, task.bytes / 10) + 100;
  segment.costs.push_back(cost);
  return uint32_t(segment.nodes.size() - 1);
}

void ProgramBuilder::addEdge(ChunkState &state, const Place &from, uint32_t to) const {
  // What stands in an earlier part is complete when this one starts.
  if (from.part + 1 == state.chunk.parts.size())
    state.edges.push_back({from.node, to});
}

/// The addresses of these values in each run of the node.
std::vector<void *> ProgramBuilder::tableOf(const Node &node, const std::vector<plan::ValueId> &values) const {
  std::vector<void *> table;
  for (uint32_t run = 0; run < node.period; ++run)
    for (plan::ValueId value : values)
      table.push_back(context.device.addressOf(plan.values[value], run));
  return table;
}

/// Copies what a staged communication reads to its twin, or what it wrote from there.
ProgramBuilder::Place ProgramBuilder::addTwinCopy(ChunkState &state, TaskId id, TaskId communication, bool isInput) {
  const Task &task = plan.tasks[communication];
  const plan::ValueId value = isInput ? valuesOf(task).front() : valuesOf(task).back();
  const uint64_t bytes = plan.values[value].bytes;
  Node copy;
  copy.kind = NodeKind::blockCopy;
  copy.task = id;
  copy.numBuffers = 2;
  copy.period = periodOf(plan, {value}, state.runs);
  copy.copy = {1, bytes, 0, 0, bytes};
  std::vector<void *> table;
  for (uint32_t run = 0; run < copy.period; ++run) {
    void *own = context.device.addressOf(plan.values[value], run);
    if (isInput)
      table.insert(table.end(), {own, context.staging.inputOf(communication, run)});
    else
      table.insert(table.end(), {context.staging.outputOf(communication), own});
  }
  return {state.chunk.parts.size() - 1, addNode(state, std::move(copy), task, std::move(table))};
}

/// Before a staged communication reads: its input goes to the twin, once no send reads that any more.
ProgramBuilder::Place ProgramBuilder::addCopyToTwin(ChunkState &state, TaskId id) {
  Node wait;
  wait.kind = NodeKind::awaitSends;
  wait.task = id;
  for (Operation *operation : operations.at(id))
    wait.operations.push_back({operation});
  uint32_t waited = addNode(state, std::move(wait), plan.tasks[id]);
  Place copy = addTwinCopy(state, id, id, true);
  addEdge(state, {copy.part, waited}, copy.node);
  return copy;
}

Status ProgramBuilder::closeSegment(ChunkState &state) {
  Segment &segment = state.chunk.parts.back().segment;
  std::sort(state.edges.begin(), state.edges.end());
  state.edges.erase(std::unique(state.edges.begin(), state.edges.end()), state.edges.end());
  segment.numDependencies.assign(segment.nodes.size(), 0);
  segment.successorsBegin.assign(segment.nodes.size() + 1, 0);
  for (auto [from, to] : state.edges) {
    ++segment.numDependencies[to];
    ++segment.successorsBegin[from + 1];
    segment.successors.push_back(to);
  }
  for (size_t node = 0; node < segment.nodes.size(); ++node)
    segment.successorsBegin[node + 1] += segment.successorsBegin[node];
  state.edges.clear();

  std::vector<size_t> begins;
  for (const std::vector<void *> &table : state.tables) {
    begins.push_back(segment.bufferTables.size());
    segment.bufferTables.insert(segment.bufferTables.end(), table.begin(), table.end());
  }
  state.tables.clear();
  for (size_t node = 0; node < segment.nodes.size(); ++node)
    segment.nodes[node].buffers = segment.bufferTables.data() + begins[node];
  return segment.nodes.empty() ? Status::ok() : context.device.prepare(segment);
}

Status ProgramBuilder::addTask(ChunkState &state, TaskId id) {
  const Task &task = plan.tasks[id];
  for (TaskId dependency : task.deps)
    if (!state.places.contains(dependency))
      return damaged(task, fmt::format("depends on task {}, which is not before it in its chunk", dependency));

  if (const auto *loop = task.as<plan::Loop>()) {
    DG_RETURN_IF_ERROR(closeSegment(state));
    state.chunk.parts.emplace_back().body = prepared.at(loop->body);
    state.chunk.parts.back().trips = loop->trips;
    state.places[id] = {state.chunk.parts.size() - 1, 0};
    state.chunk.parts.emplace_back();
    return Status::ok();
  }

  Node node;
  node.task = id;
  const std::vector<plan::ValueId> values = valuesOf(task);
  node.numBuffers = uint32_t(values.size());
  node.period = periodOf(plan, values, state.runs);
  const auto *finish = task.as<plan::Finish>();
  const bool isStart = isCommunication(task.kind()) && operations.contains(id);
  const bool isStaged = isStart && context.staging.has(id);
  std::vector<void *> table = tableOf(node, values);
  if (const auto *kernel = task.as<plan::Kernel>()) {
    resolveKernel(node, *kernel);
  } else if (finish) {
    if (!state.places.contains(finish->task) || !isCommunication(plan.tasks[finish->task].kind()))
      return damaged(task, "finishes no communication that is before it in its chunk");
    if (operations.contains(finish->task)) {
      resolveOperations(node, task, finish->task);
    } else {
      node.kind = NodeKind::blockCopy;
      node.copy.rows = 0;
    }
  } else if (isStart) {
    resolveOperations(node, task, id);
    if (isStaged) {
      node.numBuffers = 2;
      node.period = task.as<plan::Send>() ? uint32_t(node.operations.size()) : 1;
      table.clear();
      for (uint32_t run = 0; run < node.period; ++run)
        table.insert(table.end(), {context.staging.inputOf(id, run), context.staging.outputOf(id)});
    }
  } else {
    DG_RETURN_IF_ERROR(resolveBlockCopy(node, task));
  }

  std::vector<std::vector<Operation *>> sends = hazards.before(task, state.runs);
  Place wait{};
  if (!sends.empty()) {
    Node awaitSends;
    awaitSends.kind = NodeKind::awaitSends;
    awaitSends.task = id;
    awaitSends.operations = sends;
    wait = {state.chunk.parts.size() - 1, addNode(state, std::move(awaitSends), task)};
    for (const auto &list : sends)
      for (const Operation *send : list)
        if (auto started = state.places.find(send->task); started != state.places.end())
          addEdge(state, started->second, wait.node);
  }

  // What dependencies are to be complete before: the node, or the copy of what it reads.
  const bool isCopied = isStaged && !task.as<plan::Receive>();
  Place twin = isCopied ? addCopyToTwin(state, id) : Place{};
  uint32_t index = addNode(state, std::move(node), task, std::move(table));
  Place place{state.chunk.parts.size() - 1, index};
  if (isCopied)
    addEdge(state, twin, index);
  if (!sends.empty())
    addEdge(state, wait, index);
  for (TaskId dependency : task.deps)
    addEdge(state, state.places[dependency], isCopied ? twin.node : index);
  state.places[id] = place;
  if (finish) {
    addEdge(state, state.places[finish->task], index);
    if (context.staging.has(finish->task) && operations.contains(finish->task) &&
        !plan.tasks[finish->task].as<plan::Send>()) {
      state.places[id] = addTwinCopy(state, id, finish->task, false);
      addEdge(state, place, state.places[id].node);
    }
  }
  // Every rank starts the collectives of an axis in the plan's order.
  if (isStart && isCollective(task.kind())) {
    auto [last, isFirst] = state.lastCollective.try_emplace(*axisOf(task), place);
    if (!isFirst)
      addEdge(state, last->second, index);
    last->second = place;
  }
  if (!context.isolatesTasks)
    return Status::ok();
  Status closed = closeSegment(state);
  state.chunk.parts.emplace_back();
  return closed;
}

Status ProgramBuilder::buildChunk(ChunkId id, PreparedChunk &chunk) {
  ChunkState state{chunk, std::max(runsOf[id], 1u)};
  chunk.parts.emplace_back();
  for (TaskId task : plan.chunks[id].tasks)
    DG_RETURN_IF_ERROR(addTask(state, task));
  DG_RETURN_IF_ERROR(closeSegment(state));
  std::erase_if(chunk.parts, [](const Part &part) { return !part.body && part.segment.nodes.empty(); });
  return Status::ok();
}

size_t ProgramBuilder::countTiles(const PreparedChunk &chunk) const {
  size_t count = 0;
  for (const Part &part : chunk.parts) {
    if (part.body)
      count += part.trips * countTiles(*part.body);
    for (const Node &node : part.segment.nodes)
      count += node.tiles;
  }
  return count;
}

Result<PreparedProgram> ProgramBuilder::build() {
  PreparedProgram result;
  const plan::Program &source = plan.programs[program];
  size_t stage = size_t(context.at.pipe);
  if (stage >= source.actions.size())
    return Status::error(ErrorKind::badInput,
                         "program '{}' has actions for {} stages, expected {}; compile the job again",
                         nameOf(source.kind), source.actions.size(), plan.numStages());
  for (const plan::Action &action : source.actions[stage])
    DG_RETURN_IF_ERROR(reach(action.chunk, std::max(action.microbatch + 1, source.microbatches)));
  for (ChunkId id : order)
    DG_RETURN_IF_ERROR(prepareOperations(id));
  for (ChunkId id : order) {
    result.chunks.push_back(std::make_unique<PreparedChunk>());
    prepared[id] = result.chunks.back().get();
    DG_RETURN_IF_ERROR(buildChunk(id, *result.chunks.back()));
  }
  if (!missingKernels.empty())
    return Status::error(
        ErrorKind::badInput,
        "program '{}' calls {} kernels that its object lacks, the first is '{}'; compile the job again "
        "with this dgc",
        nameOf(source.kind), missingKernels.size(), *missingKernels.begin());
  for (const plan::Action &action : source.actions[stage]) {
    result.all.push_back(
        {prepared.at(action.chunk), action.microbatch, isPerMicrobatch(plan.chunks[action.chunk].phase)});
    result.numTiles += countTiles(*result.all.back().chunk);
  }
  result.keep(source.microbatchesOf(context.at.replica));
  for (const auto &chunk : result.chunks)
    for (const Part &part : chunk->parts)
      result.hasPreparedWork |= part.segment.prepared != nullptr;
  return result;
}

} // namespace

Result<PreparedProgram> prepareProgram(const ExecutorRank &context, size_t program) {
  return ProgramBuilder(context, program).build();
}

} // namespace dg
