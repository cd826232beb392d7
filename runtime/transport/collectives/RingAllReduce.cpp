// SPDX-License-Identifier: Apache-2.0
// All-reduce round a ring, in place (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009). Position i
// sends to i + 1:
//
//   step s < n-1            piece i-1-s on its way to i-1-s, which sums last; the receiver adds its own
//   step n-1+s, s < n-1     piece i-s, which is complete
//
// 2 (n-1)/n of the bytes leave each rank, whatever the number of ranks.
#include "runtime/transport/collectives/AllReduce.h"

namespace dg::detail {
namespace {

class RingAllReduce final : public SteppedAllReduce {
public:
  RingAllReduce(Transport &transport, const Group &group, uint64_t tag, plan::DType type, size_t elements)
      : SteppedAllReduce(transport, group, tag, type, elements), next((group.self + 1) % size()),
        previous((group.self + size() - 1) % size()) {
    if (!isTrivial())
      arrived.resize(pieceOf(count, size(), 0).count * elementBytes);
  }

private:
  size_t numSteps() const override { return 2 * (size() - 1); }

  /// The piece that this rank sends in a step; it receives the one before.
  size_t sentPiece(size_t step) const {
    size_t n = size(), back = step < n - 1 ? step + 1 : step - (n - 1);
    return (group.self + n - back) % n;
  }
  Piece receivedPiece(size_t step) const { return pieceOf(count, size(), (sentPiece(step) + size() - 1) % size()); }

  void beginStep(size_t step) override {
    Piece sent = pieceOf(count, size(), sentPiece(step)), received = receivedPiece(step);
    if (received.count > 0)
      receives.receive(previous, tag, step < size() - 1 ? arrived.data() : at(received.begin),
                       received.count * elementBytes);
    if (sent.count > 0)
      sends.send(next, tag, at(sent.begin), sent.count * elementBytes);
  }

  void endStep(size_t step) override {
    if (step >= size() - 1)
      return;
    Piece piece = receivedPiece(step);
    void *target = at(piece.begin);
    const void *pair[2] = {arrived.data(), target};
    sum(&target, 1, pair, 2, piece.count);
  }

  const size_t next, previous;
  std::vector<char> arrived;
};

} // namespace

std::unique_ptr<Communication> makeRingAllReduce(Transport &transport, const Group &group, uint64_t tag,
                                                 plan::DType type, size_t count) {
  return std::make_unique<RingAllReduce>(transport, group, tag, type, count);
}

} // namespace dg::detail
