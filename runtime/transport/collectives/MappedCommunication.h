// SPDX-License-Identifier: Apache-2.0
// Collectives over mapped arenas: ranks of one host read and write each other's buffers in place. Made by the functions
// of Collectives.h where all ranks of the group reach each other's memory; the buffers then lie in it.
#pragma once

#include "runtime/transport/HostMemory.h"
#include "runtime/transport/collectives/Collectives.h"

namespace dg::detail {

/// Up to here an all-reduce copies instead of summing in place: one meeting less is worth more.
inline constexpr size_t smallAllReduceBytes = 256;

std::unique_ptr<Communication> makeMappedAllReduce(HostMemory &, const Group &, uint64_t tag, plan::DType, size_t count,
                                                   plan::Bracketing bracketing);
std::unique_ptr<Communication> makeMappedAllGather(HostMemory &, const Group &, uint64_t tag, plan::DType, BlockShape);
std::unique_ptr<Communication> makeMappedReduceScatter(HostMemory &, const Group &, uint64_t tag, plan::DType,
                                                       BlockShape);
std::unique_ptr<Communication> makeMappedSend(HostMemory &, int64_t peer, uint64_t tag, size_t bytes);
std::unique_ptr<Communication> makeMappedReceive(HostMemory &, int64_t peer, uint64_t tag, size_t bytes);

/// The common course of a round:
///
///   start   tell where my buffers are: posted = round
///   goOn    all have posted ──> do my part: read and write everyone's buffers ──> passed = round
///           all have passed ──> end: no one touches my buffers any more
///
/// A rank can begin the next round only when all have passed this one, so what a line says stays true while others read
/// it.
class MappedCommunication : public Communication {
public:
  MappedCommunication(HostMemory &memory, Group members, uint64_t key, size_t inputBytes, size_t outputBytes);

  void start(void *input, void *output) final;
  Progress goOn() final;
  int64_t waitsFor() const final;
  Status failure() const final { return failed; }

protected:
  /// Reads and writes what this rank has to; all buffers are there.
  virtual void doPart() = 0;
  /// After everyone's part.
  virtual void end() {}
  void fail(Status status);

  size_t size() const { return group.ranks.size(); }
  std::byte *inputOf(size_t member) const { return memory.dataOf(group.ranks[member]) + lines[member]->input; }
  std::byte *outputOf(size_t member) const { return memory.dataOf(group.ranks[member]) + lines[member]->output; }

  HostMemory &memory;
  const Group group;

private:
  enum class Phase : uint8_t { meeting, leaving };
  bool haveAll(std::atomic<uint64_t> HostLine::*word);
  bool areSizesEqual();

  const uint64_t key;
  const size_t inputBytes, outputBytes;
  std::vector<HostLine *> lines; ///< of the members; found when first needed
  uint64_t round = 0;
  size_t waiting = 0; ///< members before this one have come
  Phase phase = Phase::meeting;
  Progress state = Progress::done;
  Status failed = Status::ok();
};

/// Why a communication over `memory` cannot be: all lines are taken.
Status noLineLeft(const HostMemory &memory);
/// A peer that disagrees on the size.
Status otherSize(const HostMemory &memory, int64_t peer, uint64_t key, uint64_t found, uint64_t expected);
/// A buffer that others cannot see.
Status notShared(const HostMemory &memory, uint64_t key, size_t bytes);

} // namespace dg::detail
