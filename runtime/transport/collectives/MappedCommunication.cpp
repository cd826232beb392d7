// SPDX-License-Identifier: Apache-2.0
// The common course of collectives over mapped arenas, and all-gather and reduce-scatter, which are short.
#include "runtime/transport/collectives/MappedCommunication.h"

#include "runtime/transport/collectives/SumInOrder.h"

#include <cassert>
#include <cstring>

namespace dg::detail {

Status noLineLeft(const HostMemory &memory) {
  return Status::error(ErrorKind::runFailed,
                       "rank {}: the plan has more communications than the shared memory of a host has room for; "
                       "compile it for fewer micro-batches or layers to a rank",
                       memory.rank());
}

Status otherSize(const HostMemory &memory, int64_t peer, uint64_t key, uint64_t found, uint64_t expected) {
  return Status::error(ErrorKind::runFailed,
                       "rank {}: receive from rank {} (tag {:#x}): found a message of {} bytes, expected {}",
                       memory.rank(), peer, key, found, expected);
}

Status notShared(const HostMemory &memory, uint64_t key, size_t bytes) {
  return Status::error(ErrorKind::runFailed,
                       "rank {} (tag {:#x}): a buffer of {} bytes is not in the memory that it shares with its host",
                       memory.rank(), key, bytes);
}

MappedCommunication::MappedCommunication(HostMemory &memory, Group members, uint64_t key, size_t inputBytes,
                                         size_t outputBytes)
    : memory(memory), group(std::move(members)), key(key), inputBytes(inputBytes), outputBytes(outputBytes),
      lines(group.ranks.size()) {
  lines[group.self] = memory.takeLine(key);
  if (!lines[group.self])
    fail(noLineLeft(memory));
}

void MappedCommunication::fail(Status status) {
  failed = std::move(status);
  state = Progress::failed;
}

void MappedCommunication::start(void *input, void *output) {
  assert(state != Progress::pending && "a communication is started again before it is done");
  if (state == Progress::failed)
    return;
  HostLine &own = *lines[group.self];
  own.input = memory.offsetOf(input, inputBytes);
  own.output = memory.offsetOf(output, outputBytes);
  if (own.input == HostMemory::npos || own.output == HostMemory::npos)
    return fail(notShared(memory, key, own.input == HostMemory::npos ? inputBytes : outputBytes));
  round = own.posted.load(std::memory_order_relaxed) + 1;
  own.bytes[round % 2].store(inputBytes, std::memory_order_relaxed);
  own.posted.store(round, std::memory_order_release);
  phase = Phase::meeting;
  waiting = 0;
  state = Progress::pending;
}

bool MappedCommunication::haveAll(std::atomic<uint64_t> HostLine::*word) {
  for (; waiting < size(); ++waiting) {
    HostLine *&line = lines[waiting];
    if (!line)
      line = memory.findLine(group.ranks[waiting], key);
    if (!line || (line->*word).load(std::memory_order_acquire) < round)
      return false;
  }
  return true;
}

bool MappedCommunication::areSizesEqual() {
  for (size_t member = 0; member < size(); ++member)
    if (uint64_t theirs = lines[member]->bytes[round % 2].load(std::memory_order_relaxed); theirs != inputBytes) {
      fail(otherSize(memory, group.ranks[member], key, theirs, inputBytes));
      return false;
    }
  return true;
}

Progress MappedCommunication::goOn() {
  if (state != Progress::pending)
    return state;
  if (phase == Phase::meeting) {
    if (!haveAll(&HostLine::posted))
      return state;
    if (!areSizesEqual())
      return state;
    doPart();
    lines[group.self]->passed.store(round, std::memory_order_release);
    phase = Phase::leaving;
    waiting = 0;
  }
  if (!haveAll(&HostLine::passed))
    return state;
  end();
  return state = Progress::done;
}

int64_t MappedCommunication::waitsFor() const { return waiting < size() ? group.ranks[waiting] : nobody; }

namespace {

/// Everyone copies everyone's block into its own output.
class MappedAllGather final : public MappedCommunication {
public:
  MappedAllGather(HostMemory &memory, const Group &group, uint64_t tag, size_t elementBytes, BlockShape shape)
      : MappedCommunication(memory, group, tag, shape.outer * shape.inner * elementBytes,
                            group.ranks.size() * shape.outer * shape.inner * elementBytes),
        outer(shape.outer), rowBytes(shape.inner * elementBytes) {}

private:
  void doPart() override {
    std::byte *to = outputOf(group.self);
    for (size_t member = 0; member < size(); ++member) {
      const std::byte *from = inputOf(member);
      for (size_t row = 0; row < outer; ++row)
        if (std::byte *target = to + (row * size() + member) * rowBytes; target != from + row * rowBytes)
          std::memcpy(target, from + row * rowBytes, rowBytes);
    }
  }

  const size_t outer, rowBytes;
};

/// Everyone sums its block of everyone's input. Where the output lies in the input, others may still read those bytes:
/// the sum is kept in this rank's own block of the input, which nobody else reads, until all are through.
class MappedReduceScatter final : public MappedCommunication {
public:
  MappedReduceScatter(HostMemory &memory, const Group &group, uint64_t tag, plan::DType type, BlockShape shape)
      : MappedCommunication(memory, group, tag,
                            group.ranks.size() * shape.outer * shape.inner * size_t(plan::sizeOf(type)),
                            shape.outer * shape.inner * size_t(plan::sizeOf(type))),
        sum(sumInOrderFor(type)), outer(shape.outer), inner(shape.inner),
        rowBytes(shape.inner * size_t(plan::sizeOf(type))), inputs(size()) {
    if (!sum)
      fail(Status::error(ErrorKind::runFailed, "reduce-scatter of {}: this type has no sum", plan::nameOf(type)));
  }

private:
  std::byte *ownRow(size_t row) const { return inputOf(group.self) + (row * size() + group.self) * rowBytes; }

  void doPart() override {
    std::byte *from = inputOf(group.self), *to = outputOf(group.self);
    isInside = to < from + size() * outer * rowBytes && from < to + outer * rowBytes;
    for (size_t row = 0; row < outer; ++row) {
      for (size_t member = 0; member < size(); ++member)
        inputs[member] = inputOf(member) + (row * size() + group.self) * rowBytes;
      void *summed = isInside ? ownRow(row) : to + row * rowBytes;
      sum(&summed, 1, inputs.data(), size(), inner);
    }
  }

  void end() override {
    for (size_t row = 0; isInside && row < outer; ++row)
      std::memmove(outputOf(group.self) + row * rowBytes, ownRow(row), rowBytes);
  }

  const SumInOrder sum;
  const size_t outer, inner, rowBytes;
  std::vector<const void *> inputs;
  bool isInside = false;
};

} // namespace

std::unique_ptr<Communication> makeMappedAllGather(HostMemory &memory, const Group &group, uint64_t tag,
                                                   plan::DType type, BlockShape shape) {
  return std::make_unique<MappedAllGather>(memory, group, tag, size_t(plan::sizeOf(type)), shape);
}

std::unique_ptr<Communication> makeMappedReduceScatter(HostMemory &memory, const Group &group, uint64_t tag,
                                                       plan::DType type, BlockShape shape) {
  return std::make_unique<MappedReduceScatter>(memory, group, tag, type, shape);
}

} // namespace dg::detail
