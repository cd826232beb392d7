// SPDX-License-Identifier: Apache-2.0
// All-reduce by two routes with the same bits: direct for small sizes (one message time), scattered for large ones
// (each element is sent twice and summed once). Both add element by element in the order of the group.
#include "runtime/transport/Collectives.h"

#include "runtime/transport/Exchange.h"
#include "runtime/transport/MappedCommunication.h"
#include "runtime/transport/SumInOrder.h"

#include <cstring>

namespace dg {
namespace {

using detail::Exchange;
using detail::GroupCommunication;
using detail::Piece;
using detail::pieceOf;

/// Above this the second trip of the scattered route costs less than the bytes it saves.
constexpr size_t directBytes = 8192;

class AllReduce : public GroupCommunication {
public:
  AllReduce(Transport &transport, Group members, uint64_t tag, plan::DType type, size_t count)
      : GroupCommunication(transport, std::move(members)), tag(tag), sum(sumInOrderFor(type)), count(count),
        elementBytes(size_t(plan::sizeOf(type))), inputs(size()) {
    if (!sum)
      fail(Status::error(ErrorKind::runFailed, "all-reduce of {}: this type has no sum", plan::nameOf(type)));
  }

protected:
  /// What needs no message is over here: nothing to sum, or no one to sum it with.
  bool isTrivial(void *input, void *output) const {
    if (size() > 1 && count > 0)
      return false;
    if (input != output && count > 0)
      std::memcpy(output, input, count * elementBytes);
    return true;
  }

  const uint64_t tag;
  const SumInOrder sum;
  const size_t count, elementBytes;
  std::vector<const void *> inputs; ///< of the sum, in group order
  std::vector<char> arrived;
};

class DirectAllReduce final : public AllReduce {
public:
  DirectAllReduce(Transport &transport, Group members, uint64_t tag, plan::DType type, size_t elements)
      : AllReduce(transport, std::move(members), tag, type, elements) {
    if (size() > 1)
      arrived.resize(size() * count * elementBytes);
  }

private:
  void begin(void *input, void *output) override {
    to = output;
    isOver = !sum || isTrivial(input, output);
    if (isOver)
      return;
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
    sum(&to, 1, inputs.data(), size(), count);
    return Progress::done;
  }

  void *to = nullptr;
  bool isOver = false;
};

/// Position i gets piece i of everyone, sums it into the output and sends it to everyone:
///   scatter  i ── piece j ──> j    for all j != i
///   sum      i: output piece i
///   gather   i ── piece i ──> j
/// The receive of piece j's sum is posted when the send of piece j has ended: in place both use the same memory.
class ScatteredAllReduce final : public AllReduce {
public:
  ScatteredAllReduce(Transport &transport, Group members, uint64_t tag, plan::DType type, size_t elements)
      : AllReduce(transport, std::move(members), tag, type, elements), own(pieceOf(elements, size(), group.self)),
        sumSends(transport, group), sumReceives(transport, group), isAsked(size()) {
    if (size() > 1)
      arrived.resize(size() * own.count * elementBytes);
  }

private:
  void begin(void *input, void *output) override {
    from = static_cast<char *>(input);
    to = static_cast<char *>(output);
    isOver = !sum || isTrivial(input, output);
    if (isOver)
      return;
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
    sum(&summed, 1, inputs.data(), size(), own.count);
    for (size_t member = 0; member < size(); ++member)
      if (member != group.self)
        sumSends.send(member, tag | 1, summed, own.count * elementBytes);
    isSummed = true;
  }

  const Piece own;
  Exchange sumSends, sumReceives;
  std::vector<bool> isAsked;
  char *from = nullptr, *to = nullptr;
  bool isOver = false, isSummed = false;
};

} // namespace

std::unique_ptr<Communication> makeAllReduce(Transport &transport, const Group &group, uint64_t tag, plan::DType type,
                                             size_t count, AllReduceRoute route) {
  if (HostMemory *memory = sharedBy(transport, group.ranks); memory && route == AllReduceRoute::bySize)
    return detail::makeMappedAllReduce(*memory, group, tag, type, count);
  bool isSmall = count * size_t(plan::sizeOf(type)) <= directBytes;
  if (route == AllReduceRoute::direct || (route == AllReduceRoute::bySize && isSmall))
    return std::make_unique<DirectAllReduce>(transport, group, tag, type, count);
  return std::make_unique<ScatteredAllReduce>(transport, group, tag, type, count);
}

} // namespace dg
