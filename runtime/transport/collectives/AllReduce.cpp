// SPDX-License-Identifier: Apache-2.0
// What all-reduces share, the choice among them, and the direct route: everyone sends all it has to everyone, for small
// sizes (one message time). Who sums has all summands, so that it gives every bracketing.
#include "runtime/transport/collectives/AllReduce.h"

#include "runtime/transport/collectives/MappedCommunication.h"

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

class DirectAllReduce final : public AllReduce {
public:
  DirectAllReduce(Transport &transport, const Group &group, uint64_t tag, plan::DType type, size_t elements,
                  plan::Bracketing bracketing)
      : AllReduce(transport, group, tag, type, elements), inputs(size()), whole(type, bracketing, size(), elements) {
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
  std::vector<const void *> inputs; ///< of the sum, in group order
  std::vector<char> arrived;
  BracketedSum whole;
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
  return detail::makeScatteredAllReduce(transport, group, tag, type, count, bracketing);
}

} // namespace dg
