// SPDX-License-Identifier: Apache-2.0
// All-reduce over several ranks on each of several hosts, in place. Rank l of each host looks after piece l:
//
//   inside    sum piece l of the buffers of this host, in their memory
//   between   all-reduce of piece l with the ranks l of the other hosts, by messages
//   inside    copy the other pieces from the neighbours
//
// Each byte of the result crosses the network as often as with one rank a host.
#include "runtime/transport/collectives/AllReduce.h"
#include "runtime/transport/collectives/MappedCommunication.h"

#include <cassert>
#include <cstring>

namespace dg::detail {
namespace {

/// Sums this rank's piece of all buffers of the host into its own output.
class PieceReduce final : public MappedCommunication {
public:
  PieceReduce(HostMemory &memory, const Group &group, uint64_t key, plan::DType type, size_t count, Piece own)
      : MappedCommunication(memory, group, key, count * size_t(plan::sizeOf(type)), count * size_t(plan::sizeOf(type))),
        sum(sumInOrderFor(type)), beginBytes(own.begin * size_t(plan::sizeOf(type))), numElements(own.count),
        inputs(size()) {
    if (!sum)
      fail(Status::error(ErrorKind::runFailed, "all-reduce of {}: this type has no sum", plan::nameOf(type)));
  }

private:
  void doPart() override {
    for (size_t member = 0; member < size(); ++member)
      inputs[member] = inputOf(member) + beginBytes;
    void *output = outputOf(group.self) + beginBytes;
    sum(&output, 1, inputs.data(), size(), numElements);
  }

  const SumInOrder sum;
  const size_t beginBytes, numElements;
  std::vector<const void *> inputs;
};

/// Copies the neighbours' pieces.
class PieceGather final : public MappedCommunication {
public:
  PieceGather(HostMemory &memory, const Group &group, uint64_t key, size_t elementBytes, size_t count)
      : MappedCommunication(memory, group, key, count * elementBytes, count * elementBytes), elementBytes(elementBytes),
        count(count) {}

private:
  void doPart() override {
    for (size_t member = 0; member < size(); ++member) {
      Piece piece = pieceOf(count, size(), member);
      if (member != group.self && piece.count > 0)
        std::memcpy(outputOf(group.self) + piece.begin * elementBytes, outputOf(member) + piece.begin * elementBytes,
                    piece.count * elementBytes);
    }
  }

  const size_t elementBytes, count;
};

class TwoLevelAllReduce final : public Communication {
public:
  TwoLevelAllReduce(Transport &transport, HostMemory &memory, const Group &group, uint64_t tag, plan::DType type,
                    size_t count, size_t blockSize)
      : elementBytes(size_t(plan::sizeOf(type))) {
    size_t block = group.self / blockSize, index = group.self % blockSize;
    Group inside, between;
    inside.self = index;
    between.self = block;
    for (size_t i = 0; i < blockSize; ++i)
      inside.ranks.push_back(group.ranks[block * blockSize + i]);
    for (size_t i = index; i < group.ranks.size(); i += blockSize)
      between.ranks.push_back(group.ranks[i]);
    own = pieceOf(count, blockSize, index);
    parts[0] = std::make_unique<PieceReduce>(memory, inside, tag | 4, type, count, own);
    parts[1] = makeAllReduce(transport, between, tag, type, own.count);
    parts[2] = std::make_unique<PieceGather>(memory, inside, tag | 5, elementBytes, count);
  }

  void start(void *input, void *output) override {
    assert(state != Progress::pending && "a communication is started again before it is done");
    if (state == Progress::failed)
      return;
    to = static_cast<char *>(output);
    current = 0;
    state = Progress::pending;
    parts[0]->start(input, output);
  }

  Progress goOn() override {
    while (state == Progress::pending) {
      Progress progress = parts[current]->goOn();
      if (progress == Progress::pending)
        return progress;
      if (progress == Progress::failed || current == 2) {
        state = progress;
        break;
      }
      char *piece = to + own.begin * elementBytes;
      ++current;
      parts[current]->start(current == 1 ? piece : to, current == 1 ? piece : to);
    }
    return state;
  }

  Transport *messages() const override { return parts[1]->messages(); }
  int64_t waitsFor() const override { return parts[current]->waitsFor(); }
  Status failure() const override { return parts[current]->failure(); }

private:
  const size_t elementBytes;
  Piece own{};
  std::unique_ptr<Communication> parts[3];
  char *to = nullptr;
  size_t current = 0;
  Progress state = Progress::done;
};

} // namespace

bool isTwoLevel(const HostMemory *memory, const Group &group, size_t blockSize) {
  if (!memory || blockSize < 2 || group.ranks.size() % blockSize != 0)
    return false;
  for (size_t begin = 0; begin < group.ranks.size(); begin += blockSize)
    if (auto first = group.ranks.begin() + int64_t(begin);
        !memory->areTogether(std::vector<int64_t>(first, first + int64_t(blockSize))))
      return false;
  return true;
}

std::unique_ptr<Communication> makeTwoLevelAllReduce(Transport &transport, HostMemory &memory, const Group &group,
                                                     uint64_t tag, plan::DType type, size_t count, size_t blockSize) {
  return std::make_unique<TwoLevelAllReduce>(transport, memory, group, tag, type, count, blockSize);
}

} // namespace dg::detail
