// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/Staging.h"

#include "runtime/executor/OperationBuilder.h"
#include "runtime/plan/TaskTraits.h"
#include "runtime/transport/HostMemory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

namespace dg {

using plan::TaskId;
using plan::Value;
using plan::ValueId;

static uint64_t aligned(uint64_t bytes) {
  return (bytes + DG_BUFFER_ALIGNMENT - 1) / DG_BUFFER_ALIGNMENT * DG_BUFFER_ALIGNMENT;
}

HostBuffer::~HostBuffer() {
  if (!memory.empty())
    munmap(memory.data(), memory.size());
}

Status HostBuffer::map(uint64_t bytes) {
  void *address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    return Status::error(ErrorKind::runFailed, "no memory for {} bytes of staging: {}; use more ranks", bytes,
                         std::strerror(errno));
  memory = {static_cast<std::byte *>(address), bytes};
  return Status::ok();
}

/// Behind the last slot.
static uint64_t endOf(const Value &value) {
  return value.offset + (value.slots > 1 ? (value.slots - 1) * value.stride : 0) + value.bytes;
}

Staging::Staging(const plan::Plan &plan, uint32_t stage, bool isHost) : arenaBytes(plan.memory[stage].arenaBytes) {
  for (const Value &value : plan.values)
    if (value.stage == stage && isHostMemory(value, isHost))
      valueBytes = isHost ? arenaBytes : std::max(valueBytes, aligned(endOf(value)));
  size = valueBytes;
  std::vector<uint64_t> ends(plan.programs.size(), valueBytes);
  for (const plan::Chunk &chunk : plan.chunks) {
    if (chunk.stage != stage || chunk.program >= ends.size())
      continue;
    uint64_t &end = ends[chunk.program];
    for (TaskId id : chunk.tasks) {
      if (id >= plan.tasks.size() || !isCommunication(plan.tasks[id].kind()))
        continue;
      const std::vector<ValueId> values = valuesOf(plan.tasks[id]);
      if (std::any_of(values.begin(), values.end(), [&](ValueId value) { return value >= plan.values.size(); }))
        continue; // ProgramBuilder says so
      const Value &input = plan.values[values.front()], &output = plan.values[values.back()];
      if (isHostMemory(input, isHost) && isHostMemory(output, isHost)) {
        seenByOthers.insert(seenByOthers.end(), {{input.offset, endOf(input)}, {output.offset, endOf(output)}});
        continue;
      }
      Twins twins;
      twins.slots = plan.tasks[id].as<plan::Send>() ? std::max(input.slots, 1u) : 1;
      twins.stride = aligned(input.bytes);
      twins.input = twins.output = end;
      end += twins.stride * twins.slots;
      if (values.size() > 1) {
        twins.output = end;
        end += aligned(output.bytes);
      }
      twinsOf[id] = twins;
    }
  }
  for (uint64_t end : ends)
    size = std::max(size, end);
  seenByOthers.push_back({valueBytes, size});
}

Status Staging::reserve(Device &device, Transport *transport) {
  HostMemory *shared = transport ? transport->hostMemory() : nullptr;
  if (shared && shared->hasNeighbours()) {
    if (size > shared->bytes())
      return Status::error(ErrorKind::usage, "a rank needs {} bytes, but the memory that its host shares has {}", size,
                           shared->bytes());
    DG_RETURN_IF_ERROR(shared->shareOnly(seenByOthers));
    start = shared->data();
  } else if (!device.isHost && size > 0) {
    DG_RETURN_IF_ERROR(own.map(size));
    start = own.bytes().data();
  }
  DG_RETURN_IF_ERROR(device.reserve(arenaBytes, {start, start ? valueBytes : 0}));
  return start ? device.registerStaging({start, size}) : Status::ok();
}

std::byte *Staging::inputOf(TaskId task, uint32_t run) const {
  const Twins &twins = twinsOf.at(task);
  return start + twins.input + run % twins.slots * twins.stride;
}

std::byte *Staging::outputOf(TaskId task) const { return start + twinsOf.at(task).output; }

/// The inputs of a program that a stage has.
static std::vector<ValueId> inputsOf(const plan::Plan &plan, const plan::Program &program, uint32_t stage) {
  std::vector<ValueId> found;
  for (const plan::Port &port : program.inputs)
    for (ValueId id : port.values)
      if (id < plan.values.size() && plan.values[id].stage == stage)
        found.push_back(id);
  return found;
}

Status InputTwins::reserve(const plan::Plan &plan, uint32_t stage, Device &device) {
  uint64_t end = 0;
  for (const plan::Program &program : plan.programs)
    for (ValueId id : inputsOf(plan, program, stage)) {
      const Value &value = plan.values[id];
      if (device.isHostMemory(value))
        continue;
      auto [twin, isNew] = twins.try_emplace(id, Twin{end, aligned(value.bytes), std::max(value.slots, 1u)});
      if (isNew)
        end += twin->second.stride * twin->second.slots;
    }
  if (end == 0)
    return Status::ok();
  DG_RETURN_IF_ERROR(memory.map(end));
  return device.registerStaging(memory.bytes());
}

std::byte *InputTwins::find(ValueId value, uint32_t slot) const {
  auto found = twins.find(value);
  if (found == twins.end())
    return nullptr;
  return memory.bytes().data() + found->second.offset + slot % found->second.slots * found->second.stride;
}

Result<Segment> InputTwins::feedOf(const plan::Plan &plan, const plan::Program &program, Device &device) const {
  Segment feed;
  for (const auto &[id, twin] : twins)
    for (const plan::Port &port : program.inputs)
      for (uint32_t slot = 0; slot < twin.slots; ++slot) {
        if (std::find(port.values.begin(), port.values.end(), id) == port.values.end())
          continue;
        const Value &value = plan.values[id];
        Node copy;
        copy.kind = NodeKind::blockCopy;
        copy.numBuffers = 2;
        copy.copy = {1, value.bytes, 0, 0, value.bytes};
        feed.nodes.push_back(std::move(copy));
        feed.costs.push_back(0);
        feed.bufferTables.insert(feed.bufferTables.end(), {find(id, slot), device.addressOf(value, slot)});
      }
  if (feed.nodes.empty())
    return feed;
  feed.numDependencies.assign(feed.nodes.size(), 0);
  feed.successorsBegin.assign(feed.nodes.size() + 1, 0);
  for (size_t node = 0; node < feed.nodes.size(); ++node)
    feed.nodes[node].buffers = feed.bufferTables.data() + 2 * node;
  DG_RETURN_IF_ERROR(device.prepare(feed));
  return feed;
}

} // namespace dg
