// SPDX-License-Identifier: Apache-2.0
// All-gather, reduce-scatter, send and receive as state machines. All-reduce, the largest, is in AllReduce.cpp.
#include "runtime/transport/collectives/Collectives.h"

#include "runtime/transport/collectives/Exchange.h"
#include "runtime/transport/collectives/MappedCommunication.h"
#include "runtime/transport/collectives/SumInOrder.h"

#include <cassert>
#include <cstring>

namespace dg {
namespace detail {

Progress Exchange::poll() {
  if (count == 0)
    return Progress::done;
  for (auto &request : open) {
    if (!request)
      continue;
    Progress progress = transport.look(*request);
    if (progress == Progress::pending)
      continue;
    request.reset();
    --count;
    if (progress == Progress::failed)
      return progress;
  }
  return count == 0 ? Progress::done : Progress::pending;
}

int64_t Exchange::firstOpenRank() const {
  size_t member = 0;
  while (!open[member])
    ++member;
  return ranks[member];
}

void GroupCommunication::start(void *input, void *output) {
  assert(state != Progress::pending && "a communication is started again before it is done");
  if (state == Progress::failed)
    return; // its requests are in an unknown state; only the way out is left
  state = Progress::pending;
  begin(input, output);
}

Progress GroupCommunication::goOn() {
  if (state != Progress::pending)
    return state;
  state = advance();
  if (state == Progress::failed && failed.isOk())
    failed = transport.failure();
  return state;
}

int64_t GroupCommunication::waitsFor() const {
  const Exchange *exchange = waitingExchange();
  return exchange->numOpen() > 0 ? exchange->firstOpenRank() : nobody;
}

Piece pieceOf(size_t count, size_t pieces, size_t index) {
  constexpr size_t grain = 64;
  size_t each = ((count + pieces - 1) / pieces + grain - 1) / grain * grain;
  size_t begin = each * index < count ? each * index : count;
  return {begin, each < count - begin ? each : count - begin};
}

} // namespace detail

namespace {

using detail::GroupCommunication;

/// Both must end; the receives are looked at first because they are what others may delay.
Progress bothOf(Progress first, Progress second) {
  if (first == Progress::failed || second == Progress::failed)
    return Progress::failed;
  return first == Progress::done && second == Progress::done ? Progress::done : Progress::pending;
}

/// Everyone sends its block to everyone.
class AllGather final : public GroupCommunication {
public:
  AllGather(Transport &transport, Group members, uint64_t tag, size_t elementBytes, BlockShape shape)
      : GroupCommunication(transport, std::move(members)), tag(tag), outer(shape.outer),
        rowBytes(shape.inner * elementBytes), blockBytes(outer * rowBytes) {
    if (outer > 1 && size() > 1)
      arrived.resize(size() * blockBytes);
  }

private:
  void begin(void *input, void *output) override {
    from = static_cast<char *>(input);
    to = static_cast<char *>(output);
    if (blockBytes == 0)
      return;
    for (size_t member = 0; member < size(); ++member)
      if (member != group.self)
        receives.receive(member, tag, outer == 1 ? to + member * blockBytes : &arrived[member * blockBytes],
                         blockBytes);
    for (size_t member = 0; member < size(); ++member)
      if (member != group.self)
        sends.send(member, tag, from, blockBytes);
    place(group.self, from);
  }

  Progress advance() override {
    Progress progress = bothOf(receives.poll(), sends.poll());
    if (progress == Progress::done && outer > 1 && blockBytes > 0)
      for (size_t member = 0; member < size(); ++member)
        if (member != group.self)
          place(member, &arrived[member * blockBytes]);
    return progress;
  }

  void place(size_t member, const char *block) {
    for (size_t row = 0; row < outer; ++row) {
      char *target = to + (row * size() + member) * rowBytes;
      if (target != block + row * rowBytes)
        std::memcpy(target, block + row * rowBytes, rowBytes);
    }
  }

  uint64_t tag;
  size_t outer, rowBytes, blockBytes;
  char *from = nullptr, *to = nullptr;
  std::vector<char> arrived; ///< [member][outer][inner], where rows must be spread
};

/// Everyone sends to each member the block that the member sums.
class ReduceScatter final : public GroupCommunication {
public:
  ReduceScatter(Transport &transport, Group members, uint64_t tag, plan::DType type, BlockShape shape)
      : GroupCommunication(transport, std::move(members)), tag(tag), sum(sumInOrderFor(type)), outer(shape.outer),
        blockElements(shape.outer * shape.inner), rowBytes(shape.inner * size_t(plan::sizeOf(type))),
        blockBytes(outer * rowBytes), inputs(size()) {
    if (size() > 1)
      arrived.resize(size() * blockBytes);
    if (outer > 1 && size() > 1)
      packed.resize(size() * blockBytes);
    if (!sum)
      fail(Status::error(ErrorKind::runFailed, "reduce-scatter of {}: this type has no sum", plan::nameOf(type)));
  }

private:
  void begin(void *input, void *output) override {
    from = static_cast<char *>(input);
    to = output;
    if (blockBytes == 0 || !sum)
      return;
    if (size() == 1) {
      if (from != to)
        std::memcpy(to, from, blockBytes);
      return;
    }
    for (size_t member = 0; member < size(); ++member)
      if (member != group.self)
        receives.receive(member, tag, &arrived[member * blockBytes], blockBytes);
    for (size_t member = 0; member < size(); ++member) {
      const char *block = outer == 1 ? from + member * blockBytes : pack(member);
      inputs[member] = member == group.self ? block : &arrived[member * blockBytes];
      if (member != group.self)
        sends.send(member, tag, block, blockBytes);
    }
  }

  /// The sum waits for the sends too, because the output may lie in the input.
  Progress advance() override {
    if (!sum)
      return Progress::failed;
    Progress progress = bothOf(receives.poll(), sends.poll());
    if (progress == Progress::done && blockBytes > 0 && size() > 1)
      sum(&to, 1, inputs.data(), size(), blockElements);
    return progress;
  }

  const char *pack(size_t member) {
    char *block = &packed[member * blockBytes];
    for (size_t row = 0; row < outer; ++row)
      std::memcpy(block + row * rowBytes, from + (row * size() + member) * rowBytes, rowBytes);
    return block;
  }

  uint64_t tag;
  SumInOrder sum;
  size_t outer, blockElements, rowBytes, blockBytes;
  char *from = nullptr;
  void *to = nullptr;
  std::vector<char> arrived, packed; ///< [member][outer][inner]
  std::vector<const void *> inputs;  ///< of the sum, in group order
};

/// A group of one member, the peer.
class PointToPoint final : public GroupCommunication {
public:
  PointToPoint(Transport &transport, int64_t peer, uint64_t tag, size_t bytes, bool isSend)
      : GroupCommunication(transport, {{peer}, 0}), tag(tag), bytes(bytes), isSend(isSend) {}

private:
  void begin(void *input, void *output) override {
    if (isSend)
      sends.send(0, tag, input, bytes);
    else
      receives.receive(0, tag, output, bytes);
  }
  Progress advance() override { return isSend ? sends.poll() : receives.poll(); }

  uint64_t tag;
  size_t bytes;
  bool isSend;
};

} // namespace

HostMemory *sharedBy(Transport &transport, const std::vector<int64_t> &ranks) {
  HostMemory *memory = transport.hostMemory();
  return memory && memory->reaches(ranks) ? memory : nullptr;
}

std::unique_ptr<Communication> makeAllGather(Transport &transport, const Group &group, uint64_t tag, plan::DType type,
                                             BlockShape shape) {
  if (HostMemory *memory = sharedBy(transport, group.ranks))
    return detail::makeMappedAllGather(*memory, group, tag, type, shape);
  return std::make_unique<AllGather>(transport, group, tag, size_t(plan::sizeOf(type)), shape);
}

std::unique_ptr<Communication> makeReduceScatter(Transport &transport, const Group &group, uint64_t tag,
                                                 plan::DType type, BlockShape shape) {
  if (HostMemory *memory = sharedBy(transport, group.ranks))
    return detail::makeMappedReduceScatter(*memory, group, tag, type, shape);
  return std::make_unique<ReduceScatter>(transport, group, tag, type, shape);
}

std::unique_ptr<Communication> makeSend(Transport &transport, int64_t peer, uint64_t tag, size_t bytes) {
  if (HostMemory *memory = sharedBy(transport, {peer}))
    return detail::makeMappedSend(*memory, peer, tag, bytes);
  return std::make_unique<PointToPoint>(transport, peer, tag, bytes, true);
}

std::unique_ptr<Communication> makeReceive(Transport &transport, int64_t peer, uint64_t tag, size_t bytes) {
  if (HostMemory *memory = sharedBy(transport, {peer}))
    return detail::makeMappedReceive(*memory, peer, tag, bytes);
  return std::make_unique<PointToPoint>(transport, peer, tag, bytes, false);
}

} // namespace dg
