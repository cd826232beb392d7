// SPDX-License-Identifier: Apache-2.0
// Indices, list lengths and loop nesting. The bounds on mesh and slots keep later arithmetic inside 64 bits.
#include "runtime/plan/PlanIndices.h"
#include "runtime/plan/TaskTraits.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace dg::plan {

namespace {

constexpr int64_t maxRanks = int64_t(1) << 24;
constexpr uint32_t maxMicrobatches = 1u << 20;
constexpr int64_t maxElements = int64_t(1) << 52;

Status missing(const std::string &path, const char *what, uint64_t id, size_t count) {
  return Status::error(ErrorKind::badInput, "plan.json: {}: {} {} does not exist (there are {})", path, what, id,
                       count);
}

Status checkIds(const std::string &path, const char *list, const char *what, const std::vector<uint32_t> &ids,
                size_t count) {
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] >= count)
      return missing(fmt::format("{}.{}[{}]", path, list, i), what, ids[i], count);
  return Status::ok();
}

Status checkMesh(const Plan &plan) {
  int64_t ranks = 1;
  for (Axis axis : allAxes) {
    int64_t size = plan.mesh.sizeOf(axis);
    if (size < 1 || size > maxRanks / ranks)
      return Status::error(ErrorKind::badInput, "plan.json: mesh.{}: size {}, expected 1 or more and at most {} ranks",
                           nameOf(axis), size, maxRanks);
    ranks *= size;
  }
  return Status::ok();
}

/// Only sums cross replicas.
Status checkNotReplica(const std::string &path, std::optional<Axis> axis) {
  if (axis != Axis::replica)
    return Status::ok();
  return Status::error(ErrorKind::badInput,
                       "plan.json: {}: found replica, expected data, tensor or pipe: replicas "
                       "hold whole tensors, and only all-reduces join them",
                       path);
}

Status checkStage(const std::string &path, uint32_t stage, const Plan &plan) {
  if (stage >= plan.numStages())
    return missing(path, "stage", stage, plan.numStages());
  return Status::ok();
}

Status checkShape(const std::string &path, const std::vector<int64_t> &shape) {
  int64_t elements = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0 || (shape[i] > 0 && elements > maxElements / shape[i]))
      return Status::error(ErrorKind::badInput, "plan.json: {}[{}]: size {} is negative or makes the tensor too large",
                           path, i, shape[i]);
    elements *= std::max<int64_t>(shape[i], 1);
  }
  return Status::ok();
}

Status checkValue(const std::string &path, const Value &value, const Plan &plan) {
  DG_RETURN_IF_ERROR(checkStage(path + ".stage", value.stage, plan));
  DG_RETURN_IF_ERROR(checkShape(path + ".shape", value.shape));
  DG_RETURN_IF_ERROR(checkShape(path + ".global_shape", value.globalShape));
  if (value.globalShape.size() != value.shape.size() || value.sharding.size() != value.shape.size())
    return Status::error(
        ErrorKind::badInput,
        "plan.json: {} ('{}'): shape has {} dimensions, global_shape {} and sharding {}; they must agree", path,
        value.name, value.shape.size(), value.globalShape.size(), value.sharding.size());
  for (size_t dim = 0; dim < value.sharding.size(); ++dim)
    DG_RETURN_IF_ERROR(checkNotReplica(fmt::format("{}.sharding[{}]", path, dim), value.sharding[dim]));
  if (value.slots < 1 || value.slots > maxMicrobatches)
    return Status::error(ErrorKind::badInput, "plan.json: {}.slots: {}, expected 1 to {}", path, value.slots,
                         maxMicrobatches);
  return Status::ok();
}

Status checkOperands(const std::string &path, const Task &task, const Plan &plan) {
  std::vector<ValueId> values = valuesOf(task);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] >= plan.values.size()) {
      std::string key = task.as<Kernel>() ? fmt::format("buffers[{}]", i) : traitsOf(task.kind()).operands[i].key;
      return missing(path + "." + key, "value", values[i], plan.values.size());
    }
  if (traitsOf(task.kind()).isCut)
    for (ValueId value : values)
      if (dimOf(task) < 0 || dimOf(task) >= int64_t(plan.values[value].shape.size()))
        return missing(path + ".dim", "dimension", uint64_t(dimOf(task)), plan.values[value].shape.size());
  return Status::ok();
}

Status checkTask(const std::string &path, const Task &task, const Plan &plan) {
  DG_RETURN_IF_ERROR(checkStage(path + ".stage", task.stage, plan));
  DG_RETURN_IF_ERROR(checkStage(path + ".peer_stage", peerStageOf(task), plan));
  DG_RETURN_IF_ERROR(checkIds(path, "deps", "op", task.deps, plan.tasks.size()));
  DG_RETURN_IF_ERROR(checkOperands(path, task, plan));
  if (!task.as<AllReduce>())
    DG_RETURN_IF_ERROR(checkNotReplica(path + ".axis", axisOf(task)));
  if (const Kernel *kernel = task.as<Kernel>(); kernel && kernel->symbol.empty())
    return Status::error(ErrorKind::badInput, "plan.json: {} ('{}'): a kernel op needs a kernel name", path, task.name);
  if (const AllReduce *reduce = task.as<AllReduce>())
    if (Result<Bracketing> known = Bracketing::parse(reduce->algorithm.name()); !known)
      return Status::error(ErrorKind::badInput, "plan.json: {}.algorithm ('{}'): {}", path, task.name,
                           known.status().message());
  if (const Finish *finish = task.as<Finish>()) {
    if (finish->task >= plan.tasks.size())
      return missing(path + ".finishes", "op", finish->task, plan.tasks.size());
    if (!isCommunication(plan.tasks[finish->task].kind()))
      return Status::error(ErrorKind::badInput, "plan.json: {}.finishes: op {} ('{}') is not a communication", path,
                           finish->task, plan.tasks[finish->task].name);
  }
  if (const Loop *loop = task.as<Loop>(); loop && loop->body >= plan.chunks.size())
    return missing(path + ".body", "chunk", loop->body, plan.chunks.size());
  return Status::ok();
}

/// Loop bodies form a forest: each chunk is the body of at most one loop, and no chunk is inside itself.
Status checkLoops(const Plan &plan) {
  std::vector<ChunkId> outer(plan.chunks.size(), noId);
  for (ChunkId chunk = 0; chunk < plan.chunks.size(); ++chunk)
    for (TaskId id : plan.chunks[chunk].tasks) {
      const Loop *loop = plan.tasks[id].as<Loop>();
      if (!loop)
        continue;
      if (outer[loop->body] != noId)
        return Status::error(ErrorKind::badInput, "plan.json: stages[{}]: the body of two loops, the second is ops[{}]",
                             loop->body, id);
      outer[loop->body] = chunk;
    }
  for (ChunkId chunk = 0; chunk < plan.chunks.size(); ++chunk) {
    size_t depth = 0;
    for (ChunkId at = outer[chunk]; at != noId; at = outer[at])
      if (at == chunk || ++depth > 64)
        return Status::error(ErrorKind::badInput,
                             "plan.json: stages[{}]: its loops contain themselves or nest deeper than 64", chunk);
  }
  return Status::ok();
}

Status checkPorts(const std::string &path, const std::vector<Port> &ports, const Plan &plan) {
  for (size_t i = 0; i < ports.size(); ++i) {
    DG_RETURN_IF_ERROR(
        checkIds(fmt::format("{}[{}]", path, i), "values", "value", ports[i].values, plan.values.size()));
    for (ValueId id : ports[i].values)
      if (plan.values[id].kind == ValueKind::scratch) // its bytes need not be those of its shape
        return Status::error(ErrorKind::badInput, "plan.json: {}[{}] ('{}'): value {} ('{}') is scratch", path, i,
                             ports[i].name, id, plan.values[id].name);
  }
  return Status::ok();
}

/// Every micro-batch goes to one replica, and every replica gets one.
Status checkDeal(const std::string &path, const Program &program, int64_t replicas) {
  if (program.dealt.empty())
    return Status::ok();
  uint64_t sum = 0;
  for (uint32_t count : program.dealt)
    sum += count;
  if (int64_t(program.dealt.size()) == replicas && sum == program.microbatches &&
      std::find(program.dealt.begin(), program.dealt.end(), 0u) == program.dealt.end())
    return Status::ok();
  return Status::error(ErrorKind::badInput,
                       "plan.json: {}.dealt: [{}], expected for each of {} replicas 1 or more of the {} micro-batches, "
                       "and all of them together",
                       path, fmt::join(program.dealt, ", "), replicas, program.microbatches);
}

Status checkProgram(size_t index, const Plan &plan) {
  const Program &program = plan.programs[index];
  std::string path = fmt::format("programs[{}]", index);
  if (plan.findProgram(program.kind) != &program)
    return Status::error(ErrorKind::badInput, "plan.json: {}.name: a second program '{}'", path, nameOf(program.kind));
  if (program.batch < 0)
    return Status::error(ErrorKind::badInput, "plan.json: {}.batch: {}, expected 0 or more", path, program.batch);
  if (program.microbatches < 1 || program.microbatches > maxMicrobatches)
    return Status::error(ErrorKind::badInput, "plan.json: {}.microbatches: {}, expected 1 to {}", path,
                         program.microbatches, maxMicrobatches);
  DG_RETURN_IF_ERROR(checkDeal(path, program, plan.mesh.replicas));
  DG_RETURN_IF_ERROR(checkPorts(path + ".inputs", program.inputs, plan));
  DG_RETURN_IF_ERROR(checkPorts(path + ".outputs", program.outputs, plan));
  if (program.actions.size() != plan.numStages())
    return Status::error(ErrorKind::badInput, "plan.json: schedule.{}: {} stages, the mesh has {}",
                         nameOf(program.kind), program.actions.size(), plan.numStages());
  for (size_t stage = 0; stage < program.actions.size(); ++stage)
    for (size_t i = 0; i < program.actions[stage].size(); ++i) {
      const Action &action = program.actions[stage][i];
      std::string where = fmt::format("schedule.{}[{}][{}]", nameOf(program.kind), stage, i);
      if (action.chunk >= plan.chunks.size())
        return missing(where, "chunk", action.chunk, plan.chunks.size());
      if (action.microbatch >= program.microbatches)
        return missing(where, "micro-batch", action.microbatch, program.microbatches);
      if (plan.chunks[action.chunk].program != index)
        return Status::error(ErrorKind::badInput,
                             "plan.json: {}: chunk {} belongs to programs[{}], not to programs[{}]", where,
                             action.chunk, plan.chunks[action.chunk].program, index);
      if (plan.chunks[action.chunk].stage != stage)
        return Status::error(ErrorKind::badInput, "plan.json: {}: chunk {} belongs to stage {}, not to stage {}", where,
                             action.chunk, plan.chunks[action.chunk].stage, stage);
    }
  return Status::ok();
}

} // namespace

Status checkIndices(const Plan &plan) {
  DG_RETURN_IF_ERROR(checkMesh(plan));
  if (plan.values.size() >= noId || plan.tasks.size() >= noId || plan.chunks.size() >= noId)
    return Status::error(ErrorKind::badInput, "plan.json: more than {} ops, values or chunks", noId - 1);
  for (size_t i = 0; i < plan.values.size(); ++i)
    DG_RETURN_IF_ERROR(checkValue(fmt::format("values[{}]", i), plan.values[i], plan));
  for (size_t i = 0; i < plan.tasks.size(); ++i)
    DG_RETURN_IF_ERROR(checkTask(fmt::format("ops[{}]", i), plan.tasks[i], plan));
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    std::string path = fmt::format("stages[{}]", i);
    DG_RETURN_IF_ERROR(checkStage(path + ".stage", plan.chunks[i].stage, plan));
    if (plan.chunks[i].program >= plan.programs.size())
      return missing(path + ".program", "program", plan.chunks[i].program, plan.programs.size());
    DG_RETURN_IF_ERROR(checkIds(path, "ops", "op", plan.chunks[i].tasks, plan.tasks.size()));
  }
  DG_RETURN_IF_ERROR(checkLoops(plan));
  for (size_t i = 0; i < plan.programs.size(); ++i)
    DG_RETURN_IF_ERROR(checkProgram(i, plan));
  if (plan.memory.size() != plan.numStages())
    return Status::error(ErrorKind::badInput, "plan.json: memory: {} stages, the mesh has {}", plan.memory.size(),
                         plan.numStages());
  if (!plan.predicted.peakBytes.empty() && plan.predicted.peakBytes.size() != plan.numStages())
    return Status::error(ErrorKind::badInput, "plan.json: predicted.peak_bytes: {} stages, the mesh has {}",
                         plan.predicted.peakBytes.size(), plan.numStages());
  return Status::ok();
}

} // namespace dg::plan
