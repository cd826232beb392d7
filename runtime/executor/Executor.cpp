// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/Executor.h"

#include "runtime/executor/InitialValues.h"
#include "runtime/executor/NumericsCheck.h"
#include "runtime/executor/OperationBuilder.h"
#include "runtime/executor/ProgramBuilder.h"
#include "runtime/plan/TaskTraits.h"
#include "runtime/support/SpinWait.h"
#include "runtime/transport/HostMemory.h"

#include <algorithm>
#include <cstring>

namespace dg {

/// A trace lane holds at most this many events of a step (about 8 MB).
static constexpr size_t maxEventsPerLane = size_t(1) << 18;

class Executor::Implementation {
public:
  Implementation(const plan::Plan &plan, plan::Coordinates at, std::unique_ptr<Device> made, Transport *transport,
                 const ExecutorOptions &options)
      : plan(plan), at(at), device(std::move(made)), rank(plan.mesh.rankOf(at)), transport(transport), options(options),
        indices(plan), progress(options.progress ? *options.progress : ownLine),
        communications(plan, rank, options.timeout, options.sharesCore ? spinsOnSharedCore : spinsOnOwnCore, progress,
                       options.trace),
        step{communications, progress.task, options.trace} {}
  ~Implementation() { device->stop(); }

  Status prepare();
  Status runStep(size_t program, const dg_scalars &scalars, const SampleAt &sampleAt);
  std::optional<plan::ValueId> findPort(size_t program, const std::string &port) const;
  /// The value if this stage has it, else null.
  const plan::Value *find(plan::ValueId value) const;
  /// What this rank has failed of by itself.
  Status ownFailure() const {
    if (!badIndex)
      return badIndex;
    return numerics && !numerics->failure() ? numerics->failure() : device->failure();
  }

  void takeMicrobatches(size_t program, std::array<uint32_t, 2> microbatches) { programs[program].keep(microbatches); }

  std::chrono::nanoseconds microbatchesTime{0}; ///< of the last step
  const plan::Plan &plan;
  const plan::Coordinates at;
  const std::unique_ptr<Device> device;
  InputTwins inputTwins;

private:
  Status checkValue(const plan::Value &value) const;
  Status writeInitialValues();
  template <typename RunSegment>
  bool runChunk(const PreparedChunk &chunk, uint32_t index, const RunSegment &runSegment);
  template <typename RunSegment> bool runActions(const PreparedProgram &program, const RunSegment &runSegment);

  const int64_t rank;
  Transport *const transport;
  const ExecutorOptions options;
  IndexCheck indices;
  ProgressLine ownLine{}; ///< written when nobody gave one
  ProgressLine &progress;
  Communications communications;
  StepContext step;
  std::vector<PreparedProgram> programs;
  Status failed = Status::ok();   ///< of every later step too
  Status badIndex = Status::ok(); ///< why, where it was an index
  std::optional<Staging> staging; ///< made by prepare()
  std::unique_ptr<NumericsCheck> numerics;
};

Status Executor::Implementation::checkValue(const plan::Value &value) const {
  const uint64_t slots = value.slots, arena = plan.memory[value.stage].arenaBytes;
  bool isAligned = value.offset % DG_BUFFER_ALIGNMENT == 0 && (slots <= 1 || value.stride % DG_BUFFER_ALIGNMENT == 0);
  bool isInside = slots >= 1 && value.offset <= arena && value.bytes <= arena - value.offset &&
                  (slots == 1 || value.stride <= (arena - value.offset - value.bytes) / (slots - 1));
  if (isAligned && isInside && (slots == 1 || value.bytes <= value.stride))
    return Status::ok();
  return Status::error(
      ErrorKind::badInput,
      "value '{}' has {} slots of {} bytes at offset {} with stride {}, which do not fit the arena of {} "
      "bytes aligned to {}; compile the job again",
      value.name, slots, value.bytes, value.offset, value.stride, arena, DG_BUFFER_ALIGNMENT);
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
      DG_RETURN_IF_ERROR(device->fill(value, slot, [&](std::span<std::byte> bytes) {
        fillInitial(value, plan.mesh, at, options.seed, tensor, bytes.data());
      }));
  }
  return Status::ok();
}

Status Executor::Implementation::prepare() {
  if (size_t(at.pipe) >= plan.memory.size())
    return Status::error(ErrorKind::badInput,
                         "the plan has the memory of {} stages, expected {}; compile the job again", plan.memory.size(),
                         plan.numStages());
  for (const plan::Value &value : plan.values)
    if (value.stage == uint32_t(at.pipe))
      DG_RETURN_IF_ERROR(checkValue(value));
  staging.emplace(plan, uint32_t(at.pipe), device->isHost);
  DG_RETURN_IF_ERROR(staging->reserve(*device, transport));
  DG_RETURN_IF_ERROR(inputTwins.reserve(plan, uint32_t(at.pipe), *device));
  DG_RETURN_IF_ERROR(writeInitialValues());

  // A check looks between two tasks: nobody else is at work then.
  DeviceOptions deviceOptions;
  deviceOptions.threads = options.checkNumerics ? 1 : options.threads;
  deviceOptions.leastSharedWorkNs = double(options.leastSharedWork.count());
  deviceOptions.timeout = options.timeout;
  DG_RETURN_IF_ERROR(device->setUp(deviceOptions, step));
  if (options.checkNumerics)
    numerics = std::make_unique<NumericsCheck>(plan, *device);
  ExecutorRank context{plan, at, rank, *device, *staging, transport, communications, options.checkNumerics};
  size_t maxTiles = 0;
  for (size_t program = 0; program < plan.programs.size(); ++program) {
    Result<PreparedProgram> prepared = prepareProgram(context, program);
    if (!prepared)
      return prepared.status();
    maxTiles = std::max(maxTiles, prepared->numTiles);
    Result<Segment> feed = inputTwins.feedOf(plan, plan.programs[program], *device);
    if (!feed)
      return feed.status();
    prepared->feed = std::move(*feed);
    programs.push_back(std::move(*prepared));
  }
  if (options.trace)
    options.trace->prepare(options.threads, std::min(maxTiles, maxEventsPerLane));
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
  const auto begin = std::chrono::steady_clock::now();
  for (const PreparedAction &action : program.actions) {
    step.microbatch = action.microbatch;
    progress.microbatch.store(action.microbatch, std::memory_order_relaxed);
    // On the host the micro-batch is known by now; other devices are asked when all is complete.
    if (!runChunk(*action.chunk, action.microbatch, runSegment) || (device->isHost && indices.hasFound()))
      return false;
    if (&action == &program.actions[program.lastOfMicrobatches])
      microbatchesTime = std::chrono::steady_clock::now() - begin;
  }
  return communications.finishAll();
}

Status Executor::Implementation::runStep(size_t program, const dg_scalars &scalars, const SampleAt &sampleAt) {
  if (!failed)
    return failed;
  if (program >= programs.size())
    return Status::error(ErrorKind::usage, "there is no program {}: the plan has {}", program, programs.size());
  step.scalars = scalars;
  step.scalars.fault = indices.word();
  progress.step.store(uint64_t(scalars.step), std::memory_order_relaxed);
  communications.beginStep(scalars.step);
  const PreparedProgram &prepared = programs[program];
  if (options.trace)
    options.trace->clear();

  if (prepared.hasPreparedWork)
    device->beginStep();
  bool isDone = prepared.feed.nodes.empty() || device->run(prepared.feed, 0);
  if (!numerics)
    isDone = isDone && runActions(prepared, [&](const Segment &s, uint32_t i) { return device->run(s, i); });
  else
    isDone = isDone && runActions(prepared, [&](const Segment &s, uint32_t i) {
               return device->run(s, i) && device->finish() && numerics->isSound(s, i, step);
             });
  isDone = isDone && device->finish() && !indices.hasFound();
  if (prepared.hasPreparedWork)
    device->endStep();
  if (isDone)
    return Status::ok();
  // Nothing may touch memory once the failure is known: its owner may free it.
  device->stop();
  if (transport)
    transport->cancelAll();
  if (indices.hasFound())
    badIndex = indices.failure(program, prepared, scalars.step, step.microbatch, sampleAt);
  Status own = ownFailure();
  failed = own ? communications.failure() : own;
  return failed;
}

std::optional<plan::ValueId> Executor::Implementation::findPort(size_t program, const std::string &port) const {
  if (program >= plan.programs.size())
    return std::nullopt;
  for (const auto *ports : {&plan.programs[program].inputs, &plan.programs[program].outputs})
    for (const plan::Port &each : *ports)
      if (each.name == port)
        for (plan::ValueId value : each.values)
          if (find(value))
            return value;
  return std::nullopt;
}

const plan::Value *Executor::Implementation::find(plan::ValueId value) const {
  return value < plan.values.size() && plan.values[value].stage == uint32_t(at.pipe) ? &plan.values[value] : nullptr;
}

Executor::Executor(std::unique_ptr<Implementation> implementation) : self(std::move(implementation)) {}
Executor::~Executor() = default;

Result<std::unique_ptr<Executor>> Executor::create(const plan::Plan &plan, plan::Coordinates at,
                                                   std::unique_ptr<Device> device, Transport *transport,
                                                   const ExecutorOptions &options) {
  if (options.threads == 0)
    return Status::error(ErrorKind::usage, "a rank needs at least one thread, found 0; use --threads 1 or more");
  const plan::Mesh &mesh = plan.mesh;
  for (plan::Axis axis : plan::allAxes)
    if (at[axis] < 0 || at[axis] >= mesh.sizeOf(axis))
      return Status::error(ErrorKind::usage,
                           "there is no rank at pipe {}, data {}, tensor {}{}: the mesh is {} × {} × {}", at.pipe,
                           at.data, at.tensor, mesh.replicas > 1 ? fmt::format(" of replica {}", at.replica) : "",
                           mesh.sizes[0], mesh.sizes[1], mesh.sizes[2]);
  if (transport && (transport->rank() != mesh.rankOf(at) || transport->numRanks() != mesh.numRanks()))
    return Status::error(ErrorKind::usage, "the transport is rank {} of {}, the plan expects rank {} of {}",
                         transport->rank(), transport->numRanks(), mesh.rankOf(at), mesh.numRanks());
  auto implementation = std::make_unique<Implementation>(plan, at, std::move(device), transport, options);
  DG_RETURN_IF_ERROR(implementation->prepare());
  return std::unique_ptr<Executor>(new Executor(std::move(implementation)));
}

Status Executor::runStep(size_t program, const dg_scalars &scalars, const SampleAt &sampleAt) {
  return self->runStep(program, scalars, sampleAt);
}

void Executor::takeMicrobatches(size_t program, std::array<uint32_t, 2> microbatches) {
  self->takeMicrobatches(program, microbatches);
}

std::chrono::nanoseconds Executor::microbatchesTime() const { return self->microbatchesTime; }

bool Executor::hasOwnFailure() const { return !self->ownFailure(); }

std::optional<plan::ValueId> Executor::findPort(size_t program, const std::string &port) const {
  return self->findPort(program, port);
}

static Status noSuchValue(plan::ValueId value, plan::Coordinates at) {
  return Status::error(ErrorKind::usage, "stage {} has no value {}", at.pipe, value);
}

Status Executor::inspect(plan::ValueId value, uint32_t slot, const Use &use) const {
  const plan::Value *found = self->find(value);
  return found ? self->device->inspect(*found, slot, use) : noSuchValue(value, self->at);
}

Status Executor::fill(plan::ValueId value, uint32_t slot, const Write &write) {
  const plan::Value *found = self->find(value);
  if (!found)
    return noSuchValue(value, self->at);
  // The next step begins with what its twin holds.
  std::byte *twin = self->inputTwins.find(value, slot);
  if (!twin)
    return self->device->fill(*found, slot, write);
  write({twin, found->bytes});
  return self->device->fill(*found, slot,
                            [&](std::span<std::byte> bytes) { std::memcpy(bytes.data(), twin, bytes.size()); });
}

Status Executor::read(plan::ValueId value, uint32_t slot, std::span<std::byte> to) const {
  const plan::Value *found = self->find(value);
  return found ? self->device->read(*found, slot, to) : noSuchValue(value, self->at);
}

std::byte *Executor::inputBuffer(plan::ValueId value, uint32_t slot) const {
  const plan::Value *found = self->find(value);
  if (!found)
    return nullptr;
  return self->device->isHostMemory(*found) ? self->device->addressOf(*found, slot)
                                            : self->inputTwins.find(value, slot);
}

uint64_t Executor::arenaBytes() const { return self->device->arenaBytes(); }

} // namespace dg
