// SPDX-License-Identifier: Apache-2.0
#include "partitioner/memory/PlanMemory.h"

#include "partitioner/memory/Arena.h"
#include "runtime/plan/PlanFacts.h"
#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <map>
#include <set>

namespace dg::partitioner {

namespace {

uint64_t roundedUp(uint64_t bytes) { return (bytes + arenaAlignment - 1) / arenaAlignment * arenaAlignment; }

/// When a value of one program and stage is in use, on the clock of the stage's tasks in the order of its phases.
struct Lifetime {
  uint32_t first = UINT32_MAX, last = 0;
  std::set<plan::ChunkId> chunks;
};

/// Packs the values of one program on one stage behind `base`; returns the end of what it used.
uint64_t packProgram(plan::Plan &plan, uint32_t programIndex, uint32_t stage, uint64_t base) {
  const plan::Program &program = plan.programs[programIndex];
  std::vector<plan::ChunkId> order;
  for (plan::ChunkId id = 0; id < plan.chunks.size(); ++id)
    if (plan.chunks[id].program == programIndex && plan.chunks[id].stage == stage)
      order.push_back(id);
  auto key = [&](plan::ChunkId id) { return std::make_pair(plan.chunks[id].phase, id); };
  std::sort(order.begin(), order.end(), [&](plan::ChunkId a, plan::ChunkId b) { return key(a) < key(b); });

  std::map<plan::ValueId, Lifetime> lifetimes;
  uint32_t clock = 0;
  for (plan::ChunkId chunk : order)
    for (plan::TaskId task : plan.chunks[chunk].tasks) {
      // What a communication touches is in use until its finish.
      for (plan::ValueId id : plan::valuesOf(plan::startOf(plan, plan.tasks[task]))) {
        if (isPersistent(plan.values[id].kind))
          continue;
        Lifetime &lifetime = lifetimes[id];
        lifetime.first = std::min(lifetime.first, clock);
        lifetime.last = std::max(lifetime.last, clock);
        lifetime.chunks.insert(chunk);
      }
      ++clock;
    }
  uint32_t end = clock == 0 ? 0 : clock - 1;
  auto keepFrom = [&](const std::vector<plan::Port> &ports, bool fromStart) {
    for (const plan::Port &port : ports)
      for (plan::ValueId id : port.values)
        if (plan.values[id].stage == stage && !isPersistent(plan.values[id].kind)) {
          Lifetime &lifetime = lifetimes[id];
          // With several micro-batches what outlives its chunk has its place alone.
          lifetime.first = fromStart || program.microbatches > 1 ? 0 : std::min(lifetime.first, end);
          lifetime.last = fromStart ? lifetime.last : end;
        }
  };
  keepFrom(program.inputs, /*fromStart=*/true);
  keepFrom(program.outputs, /*fromStart=*/false);

  std::vector<Block> blocks;
  std::vector<plan::ValueId> owners;
  for (auto &[id, lifetime] : lifetimes) {
    plan::Value &value = plan.values[id];
    value.stride = roundedUp(value.bytes);
    bool isStepLong = program.microbatches > 1 &&
                      (lifetime.chunks.size() > 1 || value.slots > 1 || value.kind == plan::ValueKind::input ||
                       value.kind == plan::ValueKind::accumulator);
    if (isStepLong)
      lifetime.first = 0, lifetime.last = end;
    blocks.push_back({value.stride * value.slots, lifetime.first, lifetime.last});
    owners.push_back(id);
  }
  Packing packing = packArena(blocks);
  for (size_t index = 0; index < owners.size(); ++index)
    plan.values[owners[index]].offset = base + packing.offsets[index];
  return base + packing.bytes;
}

/// Who touched the bytes of an arena last, as a map of disjoint ranges.
class AccessMap {
public:
  /// Records that `task` reads (or writes) a range and adds the tasks that it must wait for to `deps`.
  void access(uint64_t begin, uint64_t end, bool isWrite, plan::TaskId task, std::set<plan::TaskId> &deps) {
    if (begin == end)
      return;
    splitAt(begin);
    splitAt(end);
    uint64_t at = begin;
    for (auto range = ranges.lower_bound(begin); at < end;) {
      if (range == ranges.end() || range->first > at) {
        uint64_t gapEnd = range == ranges.end() ? end : std::min(end, range->first);
        range = ranges.emplace(at, Range{gapEnd, plan::noId, {}}).first;
      }
      Range &own = range->second;
      if (own.writer != plan::noId && own.writer != task)
        deps.insert(own.writer);
      if (isWrite) {
        for (plan::TaskId reader : own.readers)
          if (reader != task)
            deps.insert(reader);
        own.writer = task;
        own.readers.clear();
      } else if (own.readers.empty() || own.readers.back() != task) {
        own.readers.push_back(task);
      }
      at = own.end;
      ++range;
    }
  }

private:
  struct Range {
    uint64_t end;
    plan::TaskId writer;
    std::vector<plan::TaskId> readers; ///< since the last write
  };

  void splitAt(uint64_t at) {
    auto range = ranges.lower_bound(at);
    if (range == ranges.begin())
      return;
    --range;
    if (range->first < at && range->second.end > at) {
      Range tail = range->second;
      range->second.end = at;
      ranges.emplace(at, std::move(tail));
    }
  }

  std::map<uint64_t, Range> ranges; ///< by begin
};

/// Data and reused memory both: whoever touches the same bytes later waits, unless both only read.
void addDependencies(plan::Plan &plan, const plan::Chunk &chunk) {
  AccessMap accesses;
  for (plan::TaskId id : chunk.tasks) {
    plan::Task &task = plan.tasks[id];
    std::set<plan::TaskId> deps;
    auto touch = [&](plan::ValueId value, bool isWrite) {
      const plan::Value &place = plan.values[value];
      accesses.access(place.offset, place.offset + place.stride * place.slots, isWrite, id, deps);
    };
    const plan::Task &start = plan::startOf(plan, task);
    for (plan::ValueId value : plan::readsOf(start))
      touch(value, /*isWrite=*/false);
    for (plan::ValueId value : plan::writesOf(start))
      touch(value, /*isWrite=*/true);
    if (const plan::Finish *finish = task.as<plan::Finish>())
      deps.insert(finish->task);
    task.deps.assign(deps.begin(), deps.end());
  }
}

} // namespace

void planMemory(plan::Plan &plan) {
  plan.memory.resize(plan.numStages());
  plan.predicted.peakBytes.clear();
  for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
    uint64_t persistent = 0;
    for (plan::Value &value : plan.values)
      if (value.stage == stage && isPersistent(value.kind)) {
        value.offset = persistent;
        value.stride = roundedUp(value.bytes);
        persistent += value.stride;
      }
    uint64_t arena = persistent;
    for (uint32_t program = 0; program < plan.programs.size(); ++program)
      arena = std::max(arena, packProgram(plan, program, stage, persistent));
    plan.memory[stage].arenaBytes = arena;
    plan.memory[stage].persistentBytes = persistent;
    plan.predicted.peakBytes.push_back(arena);
  }
  for (const plan::Chunk &chunk : plan.chunks)
    addDependencies(plan, chunk);
}

} // namespace dg::partitioner
