// SPDX-License-Identifier: Apache-2.0
// Follows over which mesh axes each value differs from rank to rank. Inputs differ over the axes that cut them, and so
// do parameters; a kernel's results differ where an operand does; a reduction or gather over an axis makes equal, a
// block makes different. Messages carry what they know from stage to stage, so stages are followed until nothing
// changes: O(tasks) for each round, and two or three rounds, because chunks are visited in the order in which messages
// flow.
#include "runtime/plan/verify/ReplicaVerifier.h"
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
    if (isGiven(id))
      return {cutOf(plan.values[id]), 0};
    return states[id];
  }

  void leave(ValueId id, State state) { states[id] = state; }

  Status runRound() {
    isStable = true;
    for (ChunkId chunk : order)
      DG_RETURN_IF_ERROR(runChunk(chunk));
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

  Status write(TaskId task, ValueId id, State state) {
    const Value &value = plan.values[id];
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
