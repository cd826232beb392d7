// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/Executor.h"

#include "runtime/executor/Arena.h"
#include "runtime/executor/InitialValues.h"
#include "runtime/executor/NumericsCheck.h"
#include "runtime/executor/OperationBuilder.h"
#include "runtime/executor/ProgramBuilder.h"
#include "runtime/executor/SegmentRunner.h"
#include "runtime/support/SpinWait.h"
#include "runtime/transport/HostMemory.h"

#include <algorithm>

namespace dg {

/// A trace lane holds at most this many events of a step (about 8 MB).
static constexpr size_t maxEventsPerLane = size_t(1) << 18;

class Executor::Implementation {
public:
  Implementation(const plan::Plan &plan, plan::Coordinates at, Transport *transport, const ExecutorOptions &options)
      : plan(plan), at(at), rank(plan.mesh.rankOf(at)), transport(transport), options(options),
        progress(options.progress ? *options.progress : ownLine),
        communications(plan, rank, options.timeout, options.sharesCore ? spinsOnSharedCore : spinsOnOwnCore, progress,
                       options.trace),
        step{communications, progress, options.trace} {}

  Status prepare(const KernelLibrary &library);
  Status runStep(size_t program, const dg_scalars &scalars);
  const plan::Value *portValue(size_t program, const std::string &port) const;
  bool hasOwnFailure() const { return numerics && !numerics->failure().isOk(); }

  const plan::Plan &plan;
  const plan::Coordinates at;
  Arena arena;

private:
  Status makeArena();
  Status checkValue(const plan::Value &value) const;
  Status writeInitialValues();
  template <typename RunSegment>
  bool runChunk(const PreparedChunk &chunk, uint32_t index, const RunSegment &runSegment);
  template <typename RunSegment> bool runActions(const PreparedProgram &program, const RunSegment &runSegment);

  const int64_t rank;
  Transport *const transport;
  const ExecutorOptions options;
  ProgressLine ownLine{}; ///< written when nobody gave one
  ProgressLine &progress;
  Communications communications;
  StepContext step;
  std::vector<PreparedProgram> programs;
  std::unique_ptr<NumericsCheck> numerics;
  std::unique_ptr<SharedRunner<false>> sharedRunner;
  std::unique_ptr<SharedRunner<true>> tracedRunner;
  std::unique_ptr<WorkerTeam> team; ///< last: its threads use all of the above
};

Status Executor::Implementation::checkValue(const plan::Value &value) const {
  uint64_t slots = value.slots;
  bool isAligned = value.offset % DG_BUFFER_ALIGNMENT == 0 && (slots <= 1 || value.stride % DG_BUFFER_ALIGNMENT == 0);
  bool isInside = slots >= 1 && value.offset <= arena.bytes() && value.bytes <= arena.bytes() - value.offset &&
                  (slots == 1 || value.stride <= (arena.bytes() - value.offset - value.bytes) / (slots - 1));
  if (isAligned && isInside && (slots == 1 || value.bytes <= value.stride))
    return Status::ok();
  return Status::error(
      ErrorKind::badInput,
      "value '{}' has {} slots of {} bytes at offset {} with stride {}, which do not fit the arena of {} "
      "bytes aligned to {}; compile the job again",
      value.name, slots, value.bytes, value.offset, value.stride, arena.bytes(), DG_BUFFER_ALIGNMENT);
}

Status Executor::Implementation::writeInitialValues() {
  for (const plan::Value &value : plan.values) {
    if (value.stage != uint32_t(at.pipe) || value.init.kind == plan::Init::Kind::none)
      continue;
    std::span<const std::byte> tensor;
    if (value.init.kind == plan::Init::Kind::file) {
      if (!options.initialTensor)
        return Status::error(ErrorKind::usage, "value '{}' starts from a file, but there are no initial tensors",
                             value.name);
      Result<std::span<const std::byte>> found = options.initialTensor(value.name);
      if (!found)
        return found.status();
      tensor = *found;
    }
    DG_RETURN_IF_ERROR(checkInitial(value, tensor));
    for (uint32_t slot = 0; slot < value.slots; ++slot)
      fillInitial(value, plan.mesh, at, options.seed, tensor, arena.addressOf(value, slot));
  }
  return Status::ok();
}

Status Executor::Implementation::makeArena() {
  uint64_t bytes = plan.memory[size_t(at.pipe)].arenaBytes;
  HostMemory *shared = transport ? transport->hostMemory() : nullptr;
  if (!shared || !shared->hasNeighbours()) {
    Result<Arena> mapped = Arena::map(bytes);
    if (mapped)
      arena = std::move(*mapped);
    return mapped.status();
  }
  std::vector<std::pair<uint64_t, uint64_t>> seenByOthers;
  for (const plan::Task &task : plan.tasks)
    if (task.stage == uint32_t(at.pipe) && isCommunication(task.kind))
      for (plan::ValueId id : task.buffers)
        if (id < plan.values.size()) {
          const plan::Value &value = plan.values[id];
          uint64_t allSlots = value.slots > 1 ? (value.slots - 1) * value.stride : 0;
          seenByOthers.push_back({value.offset, value.offset + allSlots + value.bytes});
        }
  Result<Arena> over = Arena::over(*shared, bytes, std::move(seenByOthers));
  if (over)
    arena = std::move(*over);
  return over.status();
}

Status Executor::Implementation::prepare(const KernelLibrary &library) {
  if (size_t(at.pipe) >= plan.memory.size())
    return Status::error(ErrorKind::badInput,
                         "the plan has the memory of {} stages, expected {}; compile the job again", plan.memory.size(),
                         plan.numStages());
  DG_RETURN_IF_ERROR(makeArena());
  for (const plan::Value &value : plan.values)
    if (value.stage == uint32_t(at.pipe))
      DG_RETURN_IF_ERROR(checkValue(value));
  DG_RETURN_IF_ERROR(writeInitialValues());

  bool hasHelpers = options.threads > 1 && !options.checkNumerics;
  if (options.checkNumerics)
    numerics = std::make_unique<NumericsCheck>(plan, arena);
  ExecutorRank context{plan,
                       at,
                       rank,
                       arena,
                       library,
                       transport,
                       communications,
                       hasHelpers ? options.threads : 1,
                       double(options.leastSharedWork.count())};
  size_t maxTiles = 0;
  for (size_t program = 0; program < plan.programs.size(); ++program) {
    Result<PreparedProgram> prepared = prepareProgram(context, program);
    if (!prepared)
      return prepared.status();
    maxTiles = std::max(maxTiles, prepared->numTiles);
    programs.push_back(std::move(*prepared));
  }
  if (options.trace)
    options.trace->prepare(options.threads, std::min(maxTiles, maxEventsPerLane));

  if (!hasHelpers)
    return Status::ok();
  WorkSource *source = nullptr;
  if (options.trace)
    source = (tracedRunner = std::make_unique<SharedRunner<true>>(step)).get();
  else
    source = (sharedRunner = std::make_unique<SharedRunner<false>>(step)).get();
  Result<std::unique_ptr<WorkerTeam>> made = WorkerTeam::create(options.threads, *source);
  if (!made)
    return made.status();
  team = std::move(*made);
  return Status::ok();
}

template <typename RunSegment>
bool Executor::Implementation::runChunk(const PreparedChunk &chunk, uint32_t index, const RunSegment &runSegment) {
  for (const Part &part : chunk.parts) {
    if (!part.body) {
      if (!runSegment(part.segment, index))
        return false;
      continue;
    }
    // As deep as loops are nested in the plan, which ProgramBuilder knows to be finite.
    for (uint32_t trip = 0; trip < part.trips; ++trip)
      if (!runChunk(*part.body, trip, runSegment))
        return false;
  }
  return true;
}

template <typename RunSegment>
bool Executor::Implementation::runActions(const PreparedProgram &program, const RunSegment &runSegment) {
  for (const PreparedAction &action : program.actions) {
    step.microbatch = action.microbatch;
    progress.microbatch.store(action.microbatch, std::memory_order_relaxed);
    if (!runChunk(*action.chunk, action.microbatch, runSegment))
      return false;
  }
  return communications.finishAll();
}

Status Executor::Implementation::runStep(size_t program, const dg_scalars &scalars) {
  if (communications.hasFailed())
    return communications.failure();
  if (hasOwnFailure())
    return numerics->failure();
  if (program >= programs.size())
    return Status::error(ErrorKind::usage, "there is no program {}: the plan has {}", program, programs.size());
  step.scalars = scalars;
  progress.step.store(uint64_t(scalars.step), std::memory_order_relaxed);
  communications.beginStep(scalars.step);
  const PreparedProgram &prepared = programs[program];
  if (options.trace)
    options.trace->clear();

  bool isDone;
  if (numerics) {
    isDone = runActions(prepared, [&](const Segment &s, uint32_t i) { return numerics->run(s, i, step); });
  } else if (!team || !prepared.isShared) {
    isDone = options.trace
                 ? runActions(prepared, [&](const Segment &s, uint32_t i) { return runInOrder<true>(s, i, step); })
                 : runActions(prepared, [&](const Segment &s, uint32_t i) { return runInOrder<false>(s, i, step); });
  } else {
    team->beginStep();
    isDone = options.trace ? runActions(prepared,
                                        [&](const Segment &s, uint32_t i) {
                                          return s.shared ? tracedRunner->run(s, i) : runInOrder<true>(s, i, step);
                                        })
                           : runActions(prepared, [&](const Segment &s, uint32_t i) {
                               return s.shared ? sharedRunner->run(s, i) : runInOrder<false>(s, i, step);
                             });
    team->endStep();
  }
  if (isDone)
    return Status::ok();
  // Nothing may touch the arena once the failure is known: its owner may free it.
  if (team)
    team->stop();
  if (transport)
    transport->cancelAll();
  return hasOwnFailure() ? numerics->failure() : communications.failure();
}

const plan::Value *Executor::Implementation::portValue(size_t program, const std::string &port) const {
  if (program >= plan.programs.size())
    return nullptr;
  for (const auto *ports : {&plan.programs[program].inputs, &plan.programs[program].outputs})
    for (const plan::Port &each : *ports)
      if (each.name == port)
        for (plan::ValueId value : each.values)
          if (value < plan.values.size() && plan.values[value].stage == uint32_t(at.pipe))
            return &plan.values[value];
  return nullptr;
}

Executor::Executor(std::unique_ptr<Implementation> implementation) : self(std::move(implementation)) {}
Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::create(const plan::Plan &plan, plan::Coordinates at,
                                                   const KernelLibrary &library, Transport *transport,
                                                   const ExecutorOptions &options) {
  if (options.threads == 0)
    return Status::error(ErrorKind::usage, "a rank needs at least one thread, found 0; use --threads 1 or more");
  const plan::Mesh &mesh = plan.mesh;
  if (at.pipe < 0 || at.pipe >= mesh.sizeOf("pipe") || at.data < 0 || at.data >= mesh.sizeOf("data") || at.tensor < 0 ||
      at.tensor >= mesh.sizeOf("tensor"))
    return Status::error(ErrorKind::usage, "there is no rank at pipe {}, data {}, tensor {}: the mesh is {} × {} × {}",
                         at.pipe, at.data, at.tensor, mesh.sizeOf("pipe"), mesh.sizeOf("data"), mesh.sizeOf("tensor"));
  if (transport && (transport->rank() != mesh.rankOf(at) || transport->numRanks() != mesh.numRanks()))
    return Status::error(ErrorKind::usage, "the transport is rank {} of {}, the plan expects rank {} of {}",
                         transport->rank(), transport->numRanks(), mesh.rankOf(at), mesh.numRanks());
  auto implementation = std::make_unique<Implementation>(plan, at, transport, options);
  DG_RETURN_IF_ERROR(implementation->prepare(library));
  return std::unique_ptr<Executor>(new Executor(std::move(implementation)));
}

Status Executor::runStep(size_t program, const dg_scalars &scalars) { return self->runStep(program, scalars); }

bool Executor::hasOwnFailure() const { return self->hasOwnFailure(); }

std::byte *Executor::portData(size_t program, const std::string &port, uint32_t slot) const {
  const plan::Value *value = self->portValue(program, port);
  return value ? self->arena.addressOf(*value, slot) : nullptr;
}

std::byte *Executor::valueData(plan::ValueId value, uint32_t slot) const {
  if (value >= self->plan.values.size() || self->plan.values[value].stage != uint32_t(self->at.pipe))
    return nullptr;
  return self->arena.addressOf(self->plan.values[value], slot);
}

uint64_t Executor::arenaBytes() const { return self->arena.bytes(); }

} // namespace dg
