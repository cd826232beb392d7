// SPDX-License-Identifier: Apache-2.0
// All-reduce by the two routes that give every bracketing: direct for small sizes (one message time), scattered for
// large ones (each element is sent twice and summed once). In both, who sums has all summands.
#include "runtime/transport/AllReduce.h"

#include "runtime/transport/MappedCommunication.h"

#include <cstring>

namespace dg {
namespace detail {

AllReduce::AllReduce(Transport &transport, Group members, uint64_t tag, plan::DType type, size_t count)
    : GroupCommunication(transport, std::move(members)), tag(tag), sum(sumInOrderFor(type)), count(count),
      elementBytes(size_t(plan::sizeOf(type))) {
  if (!sum)
    fail(Status::error(ErrorKind::runFailed, "all-reduce of {}: this type has no sum", plan::nameOf(type)));
}

void AllReduce::copyToOutput(const void *input, void *output) const {
  if (input != output && count > 0)
    std::memcpy(output, input, count * elementBytes);
}

void SteppedAllReduce::begin(void *input, void *output) {
  to = static_cast<char *>(output);
  copyToOutput(input, output);
  step = 0;
  if (sum && !isTrivial())
    beginStep(step);
}

Progress SteppedAllReduce::advance() {
  if (!sum)
    return Progress::failed;
  if (isTrivial())
    return Progress::done;
  while (true) {
    Progress received = receives.poll(), sent = sends.poll();
    if (received == Progress::failed || sent == Progress::failed)
      return Progress::failed;
    if (received == Progress::pending || sent == Progress::pending)
      return Progress::pending;
    endStep(step);
    if (++step == numSteps())
      return Progress::done;
    beginStep(step);
  }
}

} // namespace detail

namespace {

using detail::AllReduce;
using detail::Exchange;
using detail::Piece;
using detail::pieceOf;

/// All-reduces whose summands arrive apart.
class GatheringAllReduce : public AllReduce {
public:
  GatheringAllReduce(Transport &transport, const Group &group, uint64_t tag, plan::DType type, size_t count,
                     plan::Bracketing bracketing)
      : AllReduce(transport, group, tag, type, count), inputs(size()), whole(type, bracketing, size(), count) {}

protected:
  std::vector<const void *> inputs; ///< of the sum, in group order
  std::vector<char> arrived;
  BracketedSum whole;
};

class DirectAllReduce final : public GatheringAllReduce {
public:
  DirectAllReduce(Transport &transport, const Group &group, uint64_t tag, plan::DType type, size_t elements,
                  plan::Bracketing bracketing)
      : GatheringAllReduce(transport, group, tag, type, elements, bracketing) {
    if (size() > 1)
      arrived.resize(size() * count * elementBytes);
  }

private:
  void begin(void *input, void *output) override {
    to = static_cast<char *>(output);
    isOver = !sum || isTrivial();
    if (isOver)
      return copyToOutput(input, output);
    size_t bytes = count * elementBytes;
    for (size_t member = 0; member < size(); ++member) {
      inputs[member] = member == group.self ? input : &arrived[member * bytes];
      if (member != group.self)
        receives.receive(member, tag, &arrived[member * bytes], bytes);
    }
    for (size_t member = 0; member < size(); ++member)
      if (member != group.self)
        sends.send(member, tag, input, bytes);
  }

  Progress advance() override {
    if (isOver)
      return sum ? Progress::done : Progress::failed;
    Progress received = receives.poll(), sent = sends.poll();
    if (received == Progress::failed || sent == Progress::failed)
      return Progress::failed;
    if (received == Progress::pending || sent == Progress::pending)
      return Progress::pending;
    void *output = to;
    whole.add(&output, 1, inputs.data(), 0, count);
    return Progress::done;
  }

  bool isOver = false;
};

/// Position i gets piece i of everyone, sums it into the output and sends it to everyone:
///   scatter  i ── piece j ──> j    for all j != i
///   sum      i: output piece i
///   gather   i ── piece i ──> j
/// The receive of piece j's sum is posted when the send of piece j has ended: in place both use the same memory.
class ScatteredAllReduce final : public GatheringAllReduce {
public:
  ScatteredAllReduce(Transport &transport, const Group &members, uint64_t tag, plan::DType type, size_t elements,
                     plan::Bracketing bracketing)
      : GatheringAllReduce(transport, members, tag, type, elements, bracketing),
        own(pieceOf(elements, size(), group.self)), sumSends(transport, group), sumReceives(transport, group),
        isAsked(size()) {
    if (size() > 1)
      arrived.resize(size() * own.count * elementBytes);
  }

private:
  void begin(void *input, void *output) override {
    from = static_cast<char *>(input);
    to = static_cast<char *>(output);
    isOver = !sum || isTrivial();
    if (isOver)
      return copyToOutput(input, output);
    isSummed = own.count == 0;
    std::fill(isAsked.begin(), isAsked.end(), false);
    size_t ownBytes = own.count * elementBytes;
    for (size_t member = 0; member < size() && ownBytes > 0; ++member) {
      inputs[member] = member == group.self ? from + own.begin * elementBytes : &arrived[member * ownBytes];
      if (member != group.self)
        receives.receive(member, tag, &arrived[member * ownBytes], ownBytes);
    }
    for (size_t member = 0; member < size(); ++member)
      if (Piece piece = pieceOf(count, size(), member); member != group.self && piece.count > 0)
        sends.send(member, tag, from + piece.begin * elementBytes, piece.count * elementBytes);
  }

  Progress advance() override {
    if (isOver)
      return sum ? Progress::done : Progress::failed;
    if (sends.poll() == Progress::failed)
      return Progress::failed;
    askForSums();
    Progress received = receives.poll();
    if (received == Progress::failed)
      return received;
    if (received == Progress::done && !isSummed)
      sumAndSend();
    if (sumReceives.poll() == Progress::failed || sumSends.poll() == Progress::failed)
      return Progress::failed;
    bool isDone = isSummed && sends.numOpen() + sumReceives.numOpen() + sumSends.numOpen() == 0;
    return isDone ? Progress::done : Progress::pending;
  }

  const Exchange *waitingExchange() const override {
    for (const Exchange *exchange : {&receives, &sumReceives, &sends})
      if (exchange->numOpen() > 0)
        return exchange;
    return &sumSends;
  }

  void askForSums() {
    for (size_t member = 0; member < size(); ++member) {
      if (member == group.self || isAsked[member] || sends.isOpen(member))
        continue;
      isAsked[member] = true;
      if (Piece piece = pieceOf(count, size(), member); piece.count > 0)
        sumReceives.receive(member, tag | 1, to + piece.begin * elementBytes, piece.count * elementBytes);
    }
  }

  void sumAndSend() {
    void *summed = to + own.begin * elementBytes;
    whole.add(&summed, 1, inputs.data(), own.begin, own.count);
    for (size_t member = 0; member < size(); ++member)
      if (member != group.self)
        sumSends.send(member, tag | 1, summed, own.count * elementBytes);
    isSummed = true;
  }

  const Piece own;
  Exchange sumSends, sumReceives;
  std::vector<bool> isAsked;
  char *from = nullptr;
  bool isOver = false, isSummed = false;
};

} // namespace

std::unique_ptr<Communication> makeAllReduce(Transport &transport, const Group &group, uint64_t tag, plan::DType type,
                                             size_t count, plan::Bracketing bracketing, AllReduceRoute route) {
  using Kind = plan::Bracketing::Kind;
  if (route == AllReduceRoute::best) {
    if (HostMemory *memory = sharedBy(transport, group.ranks))
      return detail::makeMappedAllReduce(*memory, group, tag, type, count, bracketing);
    if (bracketing.kind == Kind::ring)
      return detail::makeRingAllReduce(transport, group, tag, type, count);
    if (bracketing.kind == Kind::halving)
      return detail::makeHalvingAllReduce(transport, group, tag, type, count);
    if (bracketing.kind == Kind::twoLevel && detail::isTwoLevel(transport.hostMemory(), group, bracketing.blockSize))
      return detail::makeTwoLevelAllReduce(transport, *transport.hostMemory(), group, tag, type, count,
                                           bracketing.blockSize);
  }
  bool isSmall = detail::isSentWhole(count * size_t(plan::sizeOf(type)), group.ranks.size() - 1);
  if (route == AllReduceRoute::direct || (route == AllReduceRoute::best && isSmall))
    return std::make_unique<DirectAllReduce>(transport, group, tag, type, count, bracketing);
  return std::make_unique<ScatteredAllReduce>(transport, group, tag, type, count, bracketing);
}

} // namespace dg
