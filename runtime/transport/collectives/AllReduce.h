// SPDX-License-Identifier: Apache-2.0
// What the all-reduces over messages share, and the routes that the functions of Collectives.h choose from.
#pragma once

#include "runtime/transport/HostMemory.h"
#include "runtime/transport/collectives/BracketedSum.h"
#include "runtime/transport/collectives/Exchange.h"

namespace dg::detail {

class AllReduce : public GroupCommunication {
public:
  AllReduce(Transport &transport, Group members, uint64_t tag, plan::DType type, size_t count);

protected:
  /// Nothing to sum, or no one to sum it with.
  bool isTrivial() const { return size() <= 1 || count == 0; }
  /// In place: the output holds what this rank brings.
  void copyToOutput(const void *input, void *output) const;
  char *at(size_t element) const { return to + element * elementBytes; }

  const uint64_t tag;
  const SumInOrder sum;
  const size_t count, elementBytes;
  char *to = nullptr;
};

/// In place, in steps that follow each other: each receives something and sends something.
class SteppedAllReduce : public AllReduce {
protected:
  using AllReduce::AllReduce;
  virtual size_t numSteps() const = 0;
  virtual void beginStep(size_t step) = 0;
  /// What the step was to receive is there, and what it was to send has left.
  virtual void endStep(size_t step) = 0;

private:
  void begin(void *input, void *output) final;
  Progress advance() final;

  size_t step = 0;
};

/// Position i sums piece i of everyone and sends it to everyone, in segments that overlap. Every bracketing.
std::unique_ptr<Communication> makeScatteredAllReduce(Transport &, const Group &, uint64_t tag, plan::DType,
                                                      size_t count, plan::Bracketing);
/// Pieces go round: n-1 steps in which each is summed, n-1 in which the sums are passed on. Bracketing `ring`.
std::unique_ptr<Communication> makeRingAllReduce(Transport &, const Group &, uint64_t tag, plan::DType, size_t count);
/// log2 n steps with half of what is left, and back; small messages stay whole. Bracketing `halving`.
std::unique_ptr<Communication> makeHalvingAllReduce(Transport &, const Group &, uint64_t tag, plan::DType,
                                                    size_t count);
/// In the memory of each host, then between the hosts, then in the memory again. Bracketing `two-level` of blocks that
/// each stand on one host; see isTwoLevel.
std::unique_ptr<Communication> makeTwoLevelAllReduce(Transport &, HostMemory &, const Group &, uint64_t tag,
                                                     plan::DType, size_t count, size_t blockSize);
/// Whether each block of the group shares the memory of a host, and all blocks are equal.
bool isTwoLevel(const HostMemory *memory, const Group &group, size_t blockSize);

/// Whether a rank that would send a message `times` times sends it whole: cutting it into pieces, fewer bytes in all,
/// pays for the second trip from 32 KiB on.
inline bool isSentWhole(size_t bytes, size_t times) { return bytes * times <= 32768; }

} // namespace dg::detail
