// SPDX-License-Identifier: Apache-2.0
// All-reduce by recursive halving and doubling, in place (Rabenseifner; Thakur, Rabenseifner and Gropp, "Optimization
// of Collective Communication Operations", 2005). m is the largest power of two up to the number of ranks n:
//
//   fold     of the first 2 (n-m) positions, odd ones give all they have to the even one before, and wait
//   halve    distance m/2, …, 1: of what is left, each of two keeps a half and gives away the other
//   double   distance 1, …, m/2: the halves come back complete
//   unfold   the odd ones get the result
//
// A small message is not cut: both keep all of it, and there is nothing to double.
#include "runtime/transport/collectives/AllReduce.h"

#include <bit>

namespace dg::detail {
namespace {

class HalvingAllReduce final : public SteppedAllReduce {
public:
  HalvingAllReduce(Transport &transport, const Group &group, uint64_t tag, plan::DType type, size_t elements)
      : SteppedAllReduce(transport, group, tag, type, elements),
        isCut(!isSentWhole(elements * elementBytes, size_t(std::bit_width(group.ranks.size()) - 1))) {
    size_t folded = std::bit_floor(size()), numPairs = size() - folded;
    bool isPaired = group.self < 2 * numPairs;
    if (isPaired && group.self % 2 == 1)
      steps.push_back({group.self - 1, Kind::give, whole(), {}});
    else if (isPaired)
      steps.push_back({group.self + 1, Kind::fold, {}, whole()});
    if (!isPaired || group.self % 2 == 0)
      addHalves(isPaired ? group.self / 2 : group.self - numPairs, folded, numPairs);
    if (isPaired && group.self % 2 == 1)
      steps.push_back({group.self - 1, Kind::take, {}, whole()});
    else if (isPaired)
      steps.push_back({group.self + 1, Kind::give, whole(), {}});
    if (!isTrivial())
      arrived.resize(count * elementBytes);
  }

private:
  enum class Kind : uint8_t { give, take, fold, addLower, addHigher };
  struct Step {
    size_t member;
    Kind kind; ///< addLower: what arrives is of a lower position, and so the first summand
    Piece sent, received;
  };
  Piece whole() const { return {0, count}; }

  void addHalves(size_t position, size_t folded, size_t numPairs) {
    auto memberAt = [&](size_t other) { return other < numPairs ? 2 * other : other + numPairs; };
    std::vector<Step> back;
    Piece left = whole();
    for (size_t half = folded / 2; half > 0; half /= 2) {
      size_t member = memberAt(position ^ half);
      bool isLower = (position & half) == 0;
      Kind kind = isLower ? Kind::addHigher : Kind::addLower;
      if (!isCut) {
        steps.push_back({member, kind, left, left});
        continue;
      }
      size_t middle = left.begin + (left.count + 1) / 2;
      Piece lower = {left.begin, middle - left.begin}, higher = {middle, left.begin + left.count - middle};
      Piece kept = isLower ? lower : higher, given = isLower ? higher : lower;
      steps.push_back({member, kind, given, kept});
      back.push_back({member, Kind::take, kept, given});
      left = kept;
    }
    steps.insert(steps.end(), back.rbegin(), back.rend());
  }

  size_t numSteps() const override { return steps.size(); }

  void beginStep(size_t number) override {
    const Step &step = steps[number];
    if (step.received.count > 0)
      receives.receive(step.member, tag, step.kind == Kind::take ? at(step.received.begin) : arrived.data(),
                       step.received.count * elementBytes);
    if (step.sent.count > 0)
      sends.send(step.member, tag, at(step.sent.begin), step.sent.count * elementBytes);
  }

  void endStep(size_t number) override {
    const Step &step = steps[number];
    if (step.kind == Kind::give || step.kind == Kind::take || step.received.count == 0)
      return;
    void *target = at(step.received.begin);
    const void *pair[2] = {target, arrived.data()};
    if (step.kind == Kind::addLower)
      std::swap(pair[0], pair[1]);
    sum(&target, 1, pair, 2, step.received.count);
  }

  const bool isCut;
  std::vector<Step> steps;
  std::vector<char> arrived;
};

} // namespace

std::unique_ptr<Communication> makeHalvingAllReduce(Transport &transport, const Group &group, uint64_t tag,
                                                    plan::DType type, size_t count) {
  return std::make_unique<HalvingAllReduce>(transport, group, tag, type, count);
}

} // namespace dg::detail
