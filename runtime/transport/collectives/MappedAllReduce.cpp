// SPDX-License-Identifier: Apache-2.0
// All-reduce over mapped arenas by two ways with the same bits. Small: everyone puts a copy where all can read it and
// sums all copies, which takes one meeting. Large: everyone sums its piece of all buffers in place and writes it to
// all, which takes two, but each element is added once and moved no further than it must.
#include "runtime/transport/collectives/MappedCommunication.h"

#include "runtime/transport/collectives/BracketedSum.h"
#include "runtime/transport/collectives/Exchange.h"

#include <cassert>
#include <cstring>

namespace dg::detail {
namespace {

Status noSum(plan::DType type) {
  return Status::error(ErrorKind::runFailed, "all-reduce of {}: this type has no sum", plan::nameOf(type));
}

class LargeAllReduce final : public MappedCommunication {
public:
  LargeAllReduce(HostMemory &memory, const Group &group, uint64_t tag, plan::DType type, size_t count,
                 plan::Bracketing bracketing)
      : MappedCommunication(memory, group, tag, count * size_t(plan::sizeOf(type)), count * size_t(plan::sizeOf(type))),
        sum(type, bracketing, group.ranks.size(), count), elementBytes(size_t(plan::sizeOf(type))),
        own(pieceOf(count, group.ranks.size(), group.self)), inputs(size()), outputs(size()) {
    if (!sum.isPossible())
      fail(noSum(type));
  }

private:
  void doPart() override {
    for (size_t member = 0; member < size(); ++member) {
      inputs[member] = inputOf(member) + own.begin * elementBytes;
      outputs[member] = outputOf(member) + own.begin * elementBytes;
    }
    sum.add(outputs.data(), size(), inputs.data(), own.begin, own.count);
  }

  BracketedSum sum;
  const size_t elementBytes;
  const Piece own;
  std::vector<const void *> inputs;
  std::vector<void *> outputs;
};

/// What a rank offers of a round; two of them lie in the heap of a line. Its size stands in the line, beside the round
/// that everyone reads anyway: a line of the cache less to wait for.
struct Copy {
  alignas(64) std::byte data[smallAllReduceBytes];
};
static_assert(2 * sizeof(Copy) <= HostMemory::heapBytesOfLine);

/// A rank writes over its copy of round r in round r + 2. It begins that when all have posted r + 1, that is, after all
/// have read the copies of r: two copies are enough, and nobody needs to say that it has read.
class SmallAllReduce final : public Communication {
public:
  SmallAllReduce(HostMemory &memory, Group members, uint64_t key, plan::DType type, size_t elements,
                 plan::Bracketing bracketing)
      : memory(memory), group(std::move(members)), key(key), sum(type, bracketing, group.ranks.size(), elements),
        count(elements), bytes(elements * size_t(plan::sizeOf(type))), lines(group.ranks.size()),
        copies(group.ranks.size()), inputs(group.ranks.size()) {
    HostLine *own = lines[group.self] = memory.takeLine(key);
    if (!sum.isPossible())
      fail(noSum(type));
    else if (!own)
      fail(noLineLeft(memory));
    else
      copies[group.self] = reinterpret_cast<Copy *>(memory.heapOf(memory.rank(), *own));
  }

  void start(void *input, void *output) override {
    assert(state != Progress::pending && "a communication is started again before it is done");
    if (state == Progress::failed)
      return;
    to = output;
    HostLine &own = *lines[group.self];
    round = own.posted.load(std::memory_order_relaxed) + 1;
    Copy &mine = copies[group.self][round % 2];
    own.bytes[round % 2].store(bytes, std::memory_order_relaxed);
    if (bytes > 0)
      std::memcpy(mine.data, input, bytes);
    own.posted.store(round, std::memory_order_release);
    // Another way of this key may follow, which counts both.
    own.passed.store(round, std::memory_order_release);
    waiting = 0;
    state = Progress::pending;
  }

  Progress goOn() override {
    if (state != Progress::pending)
      return state;
    for (; waiting < lines.size(); ++waiting)
      if (!hasPosted(waiting))
        return state;
    for (size_t member = 0; member < lines.size(); ++member) {
      if (uint64_t theirs = lines[member]->bytes[round % 2].load(std::memory_order_relaxed); theirs != bytes) {
        fail(otherSize(memory, group.ranks[member], key, theirs, bytes));
        return state;
      }
      inputs[member] = copies[member][round % 2].data;
    }
    sum.add(&to, 1, inputs.data(), 0, count);
    return state = Progress::done;
  }

  int64_t waitsFor() const override { return waiting < lines.size() ? group.ranks[waiting] : nobody; }
  Status failure() const override { return failed; }

private:
  void fail(Status status) {
    failed = std::move(status);
    state = Progress::failed;
  }

  bool hasPosted(size_t member) {
    HostLine *&line = lines[member];
    if (!line) {
      line = memory.findLine(group.ranks[member], key);
      if (!line)
        return false;
      copies[member] = reinterpret_cast<Copy *>(memory.heapOf(group.ranks[member], *line));
    }
    return line->posted.load(std::memory_order_acquire) >= round;
  }

  HostMemory &memory;
  const Group group;
  const uint64_t key;
  BracketedSum sum;
  const size_t count, bytes;
  std::vector<HostLine *> lines;
  std::vector<Copy *> copies; ///< of a member, for even and odd rounds
  std::vector<const void *> inputs;
  void *to = nullptr;
  uint64_t round = 0;
  size_t waiting = 0;
  Progress state = Progress::done;
  Status failed = Status::ok();
};

} // namespace

std::unique_ptr<Communication> makeMappedAllReduce(HostMemory &memory, const Group &group, uint64_t tag,
                                                   plan::DType type, size_t count, plan::Bracketing bracketing) {
  if (count * size_t(plan::sizeOf(type)) <= smallAllReduceBytes)
    return std::make_unique<SmallAllReduce>(memory, group, tag, type, count, bracketing);
  return std::make_unique<LargeAllReduce>(memory, group, tag, type, count, bracketing);
}

} // namespace dg::detail
