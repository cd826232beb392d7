// SPDX-License-Identifier: Apache-2.0
// All-reduce in which each element is sent twice and summed once, by who has all summands: for large sizes, in every
// bracketing. Position i gets piece i of everyone, sums it into the output and sends it to everyone:
//
//   scatter  i ── piece j ──> j    for all j != i
//   sum      i: output piece i
//   gather   i ── piece i ──> j
//
// Pieces are cut into segments, and some of them are under way at a time, each in a lane of its own: while one arrives
// another is summed and a third leaves, and no direction of the link waits for the whole of the other's piece. Lane l
// carries segments l, l + lanes, … one after the other, so that all ranks agree on tags without a word.
#include "runtime/transport/collectives/AllReduce.h"

#include <algorithm>

namespace dg::detail {
namespace {

/// Small enough that a sum leaves soon after its summands have come, and that none asks its receiver first; large
/// enough that messages are few.
constexpr size_t segmentBytes = 512 << 10;
/// Segments of one all-reduce that are under way at a time.
constexpr size_t mostLanes = 2;

class ScatteredAllReduce final : public AllReduce {
public:
  ScatteredAllReduce(Transport &transport, const Group &members, uint64_t tag, plan::DType type, size_t elements,
                     plan::Bracketing bracketing)
      : AllReduce(transport, members, tag, type, elements), whole(type, bracketing, size(), elements) {
    if (isTrivial())
      return;
    size_t largest = pieceOf(count, size(), 0).count;
    numSegments = (largest * elementBytes + segmentBytes - 1) / segmentBytes;
    segmentElements = pieceOf(largest, numSegments, 0).count;
    size_t numLanes = std::min(mostLanes, numSegments);
    lanes.reserve(numLanes);
    for (size_t lane = 0; lane < numLanes; ++lane)
      lanes.emplace_back(transport, group);
    arrived.resize(numLanes * size() * segmentElements * elementBytes);
  }

private:
  struct Lane {
    Lane(Transport &transport, const Group &group)
        : sends(transport, group), receives(transport, group), sumSends(transport, group),
          sumReceives(transport, group), isAsked(group.ranks.size()), inputs(group.ranks.size()) {}

    Exchange sends, receives, sumSends, sumReceives;
    std::vector<bool> isAsked;        ///< for the sum of the segment that was sent to a member
    std::vector<const void *> inputs; ///< of the sum, in group order
    size_t segment = 0;
    bool isOpen = false, isSummed = false;
  };

  /// Segment `number` of a member's piece; the last ones may be empty.
  Piece segmentOf(size_t member, size_t number) const {
    Piece piece = pieceOf(count, size(), member);
    size_t skipped = std::min(number * segmentElements, piece.count);
    return {piece.begin + skipped, std::min(segmentElements, piece.count - skipped)};
  }
  uint64_t tagOf(const Lane &lane) const { return tag | uint64_t(&lane - lanes.data()) << 1; }

  void begin(void *input, void *output) override {
    from = static_cast<char *>(input);
    to = static_cast<char *>(output);
    if (!sum || isTrivial())
      return copyToOutput(input, output);
    for (size_t i = 0; i < lanes.size(); ++i) {
      lanes[i].segment = i;
      lanes[i].isOpen = false;
      if (mayOpen(lanes[i]))
        open(lanes[i]);
    }
  }

  /// The first lane always goes on, so that all of it gets done however many others there are.
  bool mayOpen(const Lane &lane) const { return &lane == lanes.data() || transport.hasRoom(); }

  void open(Lane &lane) {
    Piece own = segmentOf(group.self, lane.segment);
    size_t bytes = own.count * elementBytes, index = size_t(&lane - lanes.data());
    lane.isOpen = true;
    lane.isSummed = bytes == 0;
    std::fill(lane.isAsked.begin(), lane.isAsked.end(), false);
    for (size_t member = 0; member < size() && bytes > 0; ++member) {
      char *place = &arrived[(index * size() + member) * segmentElements * elementBytes];
      lane.inputs[member] = member == group.self ? from + own.begin * elementBytes : place;
      if (member != group.self)
        lane.receives.receive(member, tagOf(lane), place, bytes);
    }
    for (size_t member = 0; member < size(); ++member)
      if (Piece given = segmentOf(member, lane.segment); member != group.self && given.count > 0)
        lane.sends.send(member, tagOf(lane), from + given.begin * elementBytes, given.count * elementBytes);
  }

  Progress advance() override {
    if (!sum)
      return Progress::failed;
    bool isDone = true;
    for (Lane &lane : lanes) {
      while (lane.segment < numSegments) {
        if (!lane.isOpen && !mayOpen(lane))
          break;
        if (!lane.isOpen)
          open(lane);
        Progress progress = advance(lane);
        if (progress == Progress::failed)
          return progress;
        if (progress == Progress::pending)
          break;
        lane.isOpen = false;
        lane.segment += lanes.size();
      }
      isDone &= lane.segment >= numSegments;
    }
    return isDone ? Progress::done : Progress::pending;
  }

  Progress advance(Lane &lane) {
    if (lane.sends.poll() == Progress::failed)
      return Progress::failed;
    askForSums(lane);
    Progress received = lane.receives.poll();
    if (received == Progress::failed)
      return received;
    if (received == Progress::done && !lane.isSummed)
      sumAndSend(lane);
    if (lane.sumReceives.poll() == Progress::failed || lane.sumSends.poll() == Progress::failed)
      return Progress::failed;
    bool isDone = lane.isSummed && lane.sends.numOpen() + lane.sumReceives.numOpen() + lane.sumSends.numOpen() == 0;
    return isDone ? Progress::done : Progress::pending;
  }

  /// The receive of a sum is posted when the send of its summand has ended: in place both use the same memory.
  void askForSums(Lane &lane) {
    for (size_t member = 0; member < size(); ++member) {
      if (member == group.self || lane.isAsked[member] || lane.sends.isOpen(member))
        continue;
      lane.isAsked[member] = true;
      if (Piece given = segmentOf(member, lane.segment); given.count > 0)
        lane.sumReceives.receive(member, tagOf(lane) | 1, at(given.begin), given.count * elementBytes);
    }
  }

  void sumAndSend(Lane &lane) {
    Piece own = segmentOf(group.self, lane.segment);
    void *summed = at(own.begin);
    whole.add(&summed, 1, lane.inputs.data(), own.begin, own.count);
    for (size_t member = 0; member < size(); ++member)
      if (member != group.self)
        lane.sumSends.send(member, tagOf(lane) | 1, summed, own.count * elementBytes);
    lane.isSummed = true;
  }

  const Exchange *waitingExchange() const override {
    for (const Lane &lane : lanes)
      for (const Exchange *exchange : {&lane.receives, &lane.sumReceives, &lane.sends, &lane.sumSends})
        if (exchange->numOpen() > 0)
          return exchange;
    return &receives;
  }

  BracketedSum whole;
  size_t segmentElements = 0, numSegments = 0;
  std::vector<Lane> lanes;
  std::vector<char> arrived; ///< [lane][member][element of a segment]
  char *from = nullptr;
};

} // namespace

std::unique_ptr<Communication> makeScatteredAllReduce(Transport &transport, const Group &group, uint64_t tag,
                                                      plan::DType type, size_t count, plan::Bracketing bracketing) {
  return std::make_unique<ScatteredAllReduce>(transport, group, tag, type, count, bracketing);
}

} // namespace dg::detail
