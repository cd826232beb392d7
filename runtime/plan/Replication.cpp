// SPDX-License-Identifier: Apache-2.0
// The sums over micro-batches are the accumulators that the begin chunk sets to zero. Each is followed through the
// collectives of its own replica (an all-reduce in place, a reduce-scatter) to the first task that does anything else
// with it; the reduction over replicas comes before that one. It starts as early as it can, so that the reductions of a
// stage overlap.
#include "runtime/plan/Replication.h"

#include "runtime/plan/PlanFacts.h"

#include <algorithm>
#include <map>

namespace dg::plan {

namespace {

/// Up to so many ranks everyone sums a piece of everyone's values in one step; more go round, or in pairs if little is
/// to be sent.
constexpr int64_t mostInOneStep = 16;
constexpr uint64_t leastForRing = uint64_t(64) << 10;

Bracketing bracketingOver(int64_t replicas, uint64_t bytes) {
  if (replicas <= mostInOneStep)
    return {};
  return {bytes < leastForRing ? Bracketing::Kind::halving : Bracketing::Kind::ring};
}

/// A reduction over replicas in one chunk.
struct Reduction {
  ValueId value = noId;
  TaskId after = noId;      ///< the finish of the collective before it, if any
  size_t start = 0, finish; ///< before which position of the chunk each comes
};

class Replication {
public:
  Replication(const Plan &plan, PlanFacts facts, int64_t replicas) : plan(plan), facts(std::move(facts)), result(plan) {
    result.mesh.replicas = replicas;
  }

  Status deal(size_t index) {
    const Program &program = plan.programs[index];
    result.programs[index].dealt = dealEvenly(program.microbatches, result.mesh.replicas);
    for (uint32_t stage = 0; stage < plan.numStages(); ++stage) {
      std::map<ChunkId, std::vector<Reduction>> byChunk;
      for (ValueId sum : sumsOf(program, stage)) {
        ChunkId chunk = updateOf(program, stage, sum);
        if (chunk == noId)
          return Status::error(ErrorKind::badInput,
                               "plan: program '{}', stage {}: values[{}] ('{}') is a sum over micro-batches, but the "
                               "stage has no update in which replicas could add theirs; compile the job again",
                               nameOf(program.kind), stage, sum, plan.values[sum].name);
        byChunk[chunk].push_back(placeOf(chunk, sum));
      }
      for (auto &[chunk, reductions] : byChunk)
        insert(chunk, reductions);
    }
    return Status::ok();
  }

  Plan take() { return std::move(result); }

private:
  /// What a begin chunk of the stage sets to zero.
  std::vector<ValueId> sumsOf(const Program &program, uint32_t stage) const {
    std::vector<ValueId> sums;
    for (ChunkId chunk : gatherUse(plan, facts, program, stage).chunks)
      if (plan.chunks[chunk].phase == Phase::begin)
        for (TaskId task : plan.chunks[chunk].tasks)
          if (const Zero *zero = plan.tasks[task].as<Zero>())
            sums.push_back(zero->value);
    std::sort(sums.begin(), sums.end());
    sums.erase(std::unique(sums.begin(), sums.end()), sums.end());
    return sums;
  }

  bool touches(TaskId task, ValueId value) const {
    auto isIn = [&](const std::vector<ValueId> &list) {
      return std::find(list.begin(), list.end(), value) != list.end();
    };
    return isIn(facts.access[task].reads) || isIn(facts.access[task].writes);
  }

  /// The first update chunk of the stage that has the sum; if none has, the last one.
  ChunkId updateOf(const Program &program, uint32_t stage, ValueId sum) const {
    ChunkId found = noId;
    for (ChunkId chunk : gatherUse(plan, facts, program, stage).chunks) {
      if (plan.chunks[chunk].phase != Phase::update)
        continue;
      found = chunk;
      for (TaskId task : plan.chunks[chunk].tasks)
        if (touches(task, sum))
          return chunk;
    }
    return found;
  }

  Reduction placeOf(ChunkId chunk, ValueId sum) const {
    const std::vector<TaskId> &tasks = plan.chunks[chunk].tasks;
    Reduction reduction{sum, noId, 0, 0};
    auto next = [&] {
      size_t at = reduction.start;
      while (at < tasks.size() && !touches(tasks[at], reduction.value))
        ++at;
      return at;
    };
    for (reduction.finish = next(); reduction.finish < tasks.size(); reduction.finish = next()) {
      const Task &task = plan.tasks[tasks[reduction.finish]];
      if (const auto *scatter = task.as<ReduceScatter>(); scatter && scatter->from == reduction.value)
        reduction.value = scatter->to;
      else if (!task.as<AllReduce>())
        break;
      reduction.after = facts.finishOf[tasks[reduction.finish]];
      reduction.start = facts.positionOf[reduction.after] + 1;
    }
    return reduction;
  }

  TaskId add(const Reduction &reduction, ChunkId chunk) {
    const Value &value = plan.values[reduction.value];
    Task task;
    task.name = value.name + "/all_reduce replicas";
    task.op = "dg.all_reduce";
    task.stage = plan.chunks[chunk].stage;
    if (reduction.after != noId)
      task.deps.push_back(reduction.after);
    task.work =
        AllReduce{reduction.value, Axis::replica, numReductions++, bracketingOver(result.mesh.replicas, value.bytes)};
    result.tasks.push_back(std::move(task));
    return TaskId(result.tasks.size() - 1);
  }

  TaskId addFinish(TaskId start) {
    Task task;
    task.name = result.tasks[start].name + " finish";
    task.op = result.tasks[start].op;
    task.stage = result.tasks[start].stage;
    task.deps.push_back(start);
    task.work = Finish{start};
    result.tasks.push_back(std::move(task));
    return TaskId(result.tasks.size() - 1);
  }

  void insert(ChunkId chunk, std::vector<Reduction> &reductions) {
    std::stable_sort(reductions.begin(), reductions.end(), [](const Reduction &a, const Reduction &b) {
      return std::pair(a.start, a.finish) < std::pair(b.start, b.finish);
    });
    const std::vector<TaskId> &tasks = plan.chunks[chunk].tasks;
    std::vector<std::vector<TaskId>> before(tasks.size() + 1); // by position
    for (const Reduction &reduction : reductions)
      before[reduction.start].push_back(add(reduction, chunk));
    // All starts at a position come before the finishes there.
    TaskId start = TaskId(result.tasks.size() - reductions.size());
    for (const Reduction &reduction : reductions) {
      TaskId finish = addFinish(start++);
      before[reduction.finish].push_back(finish);
      for (size_t at = reduction.finish; at < tasks.size(); ++at)
        if (touches(tasks[at], reduction.value))
          result.tasks[tasks[at]].deps.push_back(finish);
    }
    std::vector<TaskId> order;
    for (size_t position = 0; position < before.size(); ++position) {
      order.insert(order.end(), before[position].begin(), before[position].end());
      if (position < tasks.size())
        order.push_back(tasks[position]);
    }
    result.chunks[chunk].tasks = std::move(order);
  }

  const Plan &plan;
  const PlanFacts facts;
  Plan result;
  uint32_t numReductions = 0;
};

} // namespace

std::vector<uint32_t> dealEvenly(uint32_t microbatches, int64_t replicas) {
  std::vector<uint32_t> dealt;
  for (int64_t replica = 0; replica < replicas; ++replica)
    dealt.push_back(uint32_t(microbatches / replicas + (replica < microbatches % replicas ? 1 : 0)));
  return dealt;
}

Program programOf(const Plan &plan, const Program &program, int64_t replica) {
  Program own = program;
  for (std::vector<Action> &actions : own.actions)
    std::erase_if(actions,
                  [&](const Action &action) { return !program.isRunBy(replica, plan.chunks[action.chunk], action); });
  return own;
}

int64_t longestReplica(const Program &program) {
  return std::max_element(program.dealt.begin(), program.dealt.end()) - program.dealt.begin();
}

Result<Plan> replicate(const Plan &plan, int64_t replicas) {
  if (replicas == 1)
    return plan;
  Result<PlanFacts> facts = gatherFacts(plan);
  if (!facts)
    return facts.status();
  Replication replication(plan, std::move(*facts), replicas);
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    const Program &program = plan.programs[i];
    if (program.kind == ProgramKind::prepare)
      continue;
    if (program.batch == 0)
      return Status::error(ErrorKind::usage,
                           "{} replicas: the job was compiled without --batch, so that there are no samples to deal to "
                           "them; compile it with --batch N and --microbatches {} or more",
                           replicas, replicas);
    if (int64_t(program.microbatches) < replicas)
      return Status::error(ErrorKind::usage,
                           "{} replicas: a batch of program '{}' has {} micro-batch{}, and each replica needs one; run "
                           "at most {}, or compile the job with --microbatches {} or more",
                           replicas, nameOf(program.kind), program.microbatches, program.microbatches == 1 ? "" : "es",
                           program.microbatches, replicas);
    DG_RETURN_IF_ERROR(replication.deal(i));
  }
  return replication.take();
}

} // namespace dg::plan
