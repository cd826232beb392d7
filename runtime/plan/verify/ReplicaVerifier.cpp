// SPDX-License-Identifier: Apache-2.0
// Follows over which mesh axes each value differs from rank to rank. Inputs differ over the axes that cut them, and so
// do parameters; a kernel's results differ where an operand does; a reduction or gather over an axis makes equal, a
// block makes different. Messages carry what they know from stage to stage, so stages are followed until nothing
// changes: O(tasks) for each round, and two or three rounds, because chunks are visited in the order in which messages
// flow.
//
// Replicas are one more such axis. Whatever a dealt program computes for a micro-batch differs over it, a sum over
// micro-batches too; so an update may use no such value before it was reduced over replicas.
#include "runtime/plan/verify/ReplicaVerifier.h"
#include "runtime/plan/SampleRows.h"
#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace dg::plan {

namespace {

using Axes = uint8_t; ///< a bit for each axis of the mesh

/// What is known of a value on the ranks of one stage.
struct State {
  Axes differs = 0;
  Axes reduced = 0; ///< summed over the axis, and not written since
};

class Replicas {
public:
  Replicas(const Plan &plan, const PlanFacts &facts, const Program &program)
      : plan(plan), facts(facts), program(program), states(plan.values.size()) {
    for (uint32_t stage = 0; stage < plan.numStages(); ++stage)
      for (ChunkId chunk : gatherUse(plan, facts, program, stage).chunks)
        order.push_back(chunk);
    // Forward along the pipeline, backward against it.
    auto key = [&](ChunkId id) {
      const Chunk &chunk = plan.chunks[id];
      int64_t stage = chunk.stage;
      return std::tuple(chunk.phase, chunk.phase == Phase::backward ? -stage : stage, id);
    };
    std::sort(order.begin(), order.end(), [&](ChunkId a, ChunkId b) { return key(a) < key(b); });
  }

  Status run() {
    // Differences only grow, and each round carries them over at least one more message.
    for (size_t round = 0; round <= 2 * plan.tasks.size() && !isStable; ++round)
      DG_RETURN_IF_ERROR(runRound());
    isChecking = true;
    DG_RETURN_IF_ERROR(runRound());
    for (const Port &port : program.outputs)
      for (ValueId id : port.values)
        DG_RETURN_IF_ERROR(checkOutput(port, id));
    return Status::ok();
  }

private:
  /// Ranks do not differ over an axis on which they are alone.
  Axes bitOf(std::optional<Axis> axis) const {
    return axis && plan.mesh.sizeOf(*axis) > 1 ? Axes(1 << unsigned(*axis)) : Axes(0);
  }

  /// The axes that cut the value.
  Axes cutOf(const Value &value) const {
    Axes axes = 0;
    for (std::optional<Axis> axis : value.sharding)
      axes |= bitOf(axis);
    return axes;
  }

  static std::string namesOf(Axes axes) {
    std::vector<std::string> names;
    for (Axis axis : allAxes)
      if (axes & (1 << unsigned(axis)))
        names.push_back(nameOf(axis));
    return fmt::format("{}", fmt::join(names, ", "));
  }

  bool isGiven(ValueId id) const {
    return isPersistent(plan.values[id].kind) || plan.values[id].kind == ValueKind::input;
  }

  State stateOf(ValueId id) const {
    if (!isGiven(id))
      return states[id];
    const Axes dealt = plan.values[id].kind == ValueKind::input ? overReplicas : 0;
    return {Axes(cutOf(plan.values[id]) | dealt), 0};
  }

  void leave(ValueId id, State state) {
    if (isPerMicrobatch(phase))
      state.differs |= overReplicas;
    states[id] = state;
  }

  Status runRound() {
    isStable = true;
    for (ChunkId chunk : order) {
      phase = plan.chunks[chunk].phase;
      DG_RETURN_IF_ERROR(runChunk(chunk));
    }
    return Status::ok();
  }

  Status runChunk(ChunkId chunk) {
    for (TaskId task : plan.chunks[chunk].tasks)
      DG_RETURN_IF_ERROR(runTask(task));
    return Status::ok();
  }

  Status runTask(TaskId id) {
    return std::visit([&](const auto &work) { return run(id, work); }, plan.tasks[id].work);
  }

  Status run(TaskId, const Finish &) { return Status::ok(); }

  Status run(TaskId, const Loop &loop) { // twice: what one trip leaves, the next one reads
    DG_RETURN_IF_ERROR(runChunk(loop.body));
    return runChunk(loop.body);
  }

  Status run(TaskId, const Send &send) {
    Axes &known = messages[send.channel];
    Axes differs = known | stateOf(send.value).differs;
    isStable = isStable && differs == known;
    known = differs;
    return Status::ok();
  }

  Status run(TaskId, const Receive &receive) {
    leave(receive.value, {messages[receive.channel], 0});
    return Status::ok();
  }

  Status run(TaskId id, const AllReduce &reduce) {
    State state = stateOf(reduce.value);
    Axes axis = bitOf(reduce.axis);
    if (isChecking && reduce.axis == Axis::replica)
      DG_RETURN_IF_ERROR(checkCrossing(id, reduce.value));
    if (isChecking && (state.reduced & axis))
      return Status::error(ErrorKind::badInput,
                           "plan: ops[{}] ('{}') sums values[{}] ('{}') over {}, which was summed over it before; "
                           "expected one reduction of each sum",
                           id, plan.tasks[id].name, reduce.value, plan.values[reduce.value].name, nameOf(reduce.axis));
    leave(reduce.value, {Axes(state.differs & ~axis), Axes(state.reduced | axis)});
    return Status::ok();
  }

  Status run(TaskId, const AllGather &gather) {
    leave(gather.to, {Axes(stateOf(gather.from).differs & ~bitOf(gather.axis)), 0});
    return Status::ok();
  }

  Status run(TaskId id, const ReduceScatter &scatter) {
    return write(id, scatter.to, {Axes(stateOf(scatter.from).differs | bitOf(scatter.axis)), 0});
  }

  Status run(TaskId id, const Slice &slice) {
    return write(id, slice.to, {Axes(stateOf(slice.from).differs | bitOf(slice.axis)), 0});
  }

  Status run(TaskId id, const Copy &copy) { return write(id, copy.to, stateOf(copy.from)); }

  Status run(TaskId id, const Zero &zero) { return write(id, zero.value, {}); }

  Status run(TaskId id, const Kernel &) {
    State state;
    for (ValueId value : facts.access[id].reads)
      state.differs |= stateOf(value).differs;
    for (ValueId value : facts.access[id].writes)
      DG_RETURN_IF_ERROR(write(id, value, state));
    return Status::ok();
  }

  /// What crosses replicas is the sum that each of them has over its own micro-batches, and it does so once in a step.
  Status checkCrossing(TaskId task, ValueId id) const {
    auto wrong = [&](std::string_view what) {
      return Status::error(ErrorKind::badInput, "plan: ops[{}] ('{}') sums values[{}] ('{}') over replicas, {}", task,
                           plan.tasks[task].name, id, plan.values[id].name, what);
    };
    if (isPerMicrobatch(phase))
      return wrong(fmt::format("in a {} chunk, which some of them may skip; expected an update", nameOf(phase)));
    if (!(stateOf(id).reduced & bitOf(Axis::replica)) && !(stateOf(id).differs & overReplicas))
      return wrong("which hold the same; expected a sum over micro-batches");
    return Status::ok();
  }

  /// Outside of collectives an update works with what is the same on all replicas: a sum of squares of each one's own
  /// gradients is none of all gradients.
  Status checkUpdate(TaskId task, ValueId id) const {
    if (!isChecking || isPerMicrobatch(phase) || !(stateOf(id).differs & overReplicas))
      return Status::ok();
    return Status::error(ErrorKind::badInput,
                         "plan: ops[{}] ('{}') of the {} reads values[{}] ('{}'), which differs over replica; expected "
                         "a reduction over it before",
                         task, plan.tasks[task].name, nameOf(phase), id, plan.values[id].name);
  }

  Status write(TaskId task, ValueId id, State state) {
    const Value &value = plan.values[id];
    for (ValueId read : readsOf(plan.tasks[task]))
      if (!isCollective(plan.tasks[task].kind()))
        DG_RETURN_IF_ERROR(checkUpdate(task, read));
    Axes wrong = Axes(state.differs & ~cutOf(value));
    if (isChecking && isPersistent(value.kind) && wrong)
      return Status::error(
          ErrorKind::badInput,
          "plan: ops[{}] ('{}') writes values[{}] ('{}'), of which the ranks over {} are to hold the same, from what "
          "differs over {}; expected a reduction over it before",
          task, plan.tasks[task].name, id, value.name, namesOf(wrong), namesOf(wrong));
    leave(id, state);
    return Status::ok();
  }

  /// Inference may leave each data rank the rows of its own samples: they are cut so.
  Status checkOutput(const Port &port, ValueId id) const {
    Axes allowed = cutOf(plan.values[id]);
    // Each replica is asked for the rows of its own micro-batches.
    if (program.kind == ProgramKind::infer || hasSampleRows(plan, program, plan.values[id]))
      allowed |= overReplicas;
    Axes wrong = Axes(stateOf(id).differs & ~allowed);
    if (!wrong)
      return Status::ok();
    return Status::error(ErrorKind::badInput,
                         "plan: program '{}': output '{}' (values[{}]) differs over {}; expected a reduction over it",
                         nameOf(program.kind), port.name, id, namesOf(wrong));
  }

  const Plan &plan;
  const PlanFacts &facts;
  const Program &program;
  const Axes overReplicas = program.dealt.empty() ? 0 : bitOf(Axis::replica); ///< if replicas have samples of their own
  Phase phase = Phase::begin;                                                 ///< of the chunk that is followed
  std::vector<ChunkId> order;
  std::vector<State> states;         ///< per value
  std::map<uint32_t, Axes> messages; ///< by channel: over which axes they differ
  bool isStable = false, isChecking = false;
};

/// A sum over micro-batches to which nothing is added is zero for ever.
Status checkSums(const Plan &plan, const PlanFacts &facts, const Program &program) {
  std::vector<TaskId> zeroedBy(plan.values.size(), noId);
  std::vector<bool> isAddedTo(plan.values.size(), false);
  for (uint32_t stage = 0; stage < plan.numStages(); ++stage)
    for (ChunkId chunk : gatherUse(plan, facts, program, stage).chunks)
      for (TaskId task : plan.chunks[chunk].tasks)
        for (ValueId value : facts.access[task].writes)
          if (plan.tasks[task].as<Zero>() && plan.chunks[chunk].phase == Phase::begin)
            zeroedBy[value] = task;
          else if (isPerMicrobatch(plan.chunks[chunk].phase))
            isAddedTo[value] = true;
  for (ValueId value = 0; value < plan.values.size(); ++value)
    if (zeroedBy[value] != noId && !isAddedTo[value])
      return Status::error(ErrorKind::badInput,
                           "plan: program '{}': nothing is added to values[{}] ('{}'), which ops[{}] sets to zero",
                           nameOf(program.kind), value, plan.values[value].name, zeroedBy[value]);
  return Status::ok();
}

} // namespace

Status verifyReplicas(const Plan &plan, const PlanFacts &facts, const Program &program) {
  DG_RETURN_IF_ERROR(checkSums(plan, facts, program));
  return Replicas(plan, facts, program).run();
}

} // namespace dg::plan
