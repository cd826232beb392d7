// SPDX-License-Identifier: Apache-2.0
// All-reduce round a ring, in place (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009). Position i
// sends to i + 1:
//
//   step s < n-1            piece i-1-s on its way to i-1-s, which sums last; the receiver adds its own
//   step n-1+s, s < n-1     piece i-s, which is complete
//
// 2 (n-1)/n of the bytes leave each rank, whatever the number of ranks.
#include "runtime/transport/AllReduce.h"

namespace dg::detail {
namespace {

class RingAllReduce final : public AllReduce {
public:
  RingAllReduce(Transport &transport, const Group &group, uint64_t tag, plan::DType type, size_t elements)
      : AllReduce(transport, group, tag, type, elements), next((group.self + 1) % size()),
        previous((group.self + size() - 1) % size()) {
    if (!isTrivial())
      arrived.resize(pieceOf(count, size(), 0).count * elementBytes);
  }

private:
  void begin(void *input, void *output) override {
    to = static_cast<char *>(output);
    copyToOutput(input, output);
    step = 0;
    if (sum && !isTrivial())
      beginStep();
  }

  Progress advance() override {
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
      if (step < size() - 1)
        addArrived();
      if (++step == 2 * (size() - 1))
        return Progress::done;
      beginStep();
    }
  }

  /// The piece that this rank sends in the current step; it receives the one before.
  size_t sentPiece() const {
    size_t n = size(), back = step < n - 1 ? step + 1 : step - (n - 1);
    return (group.self + n - back) % n;
  }
  Piece receivedPiece() const { return pieceOf(count, size(), (sentPiece() + size() - 1) % size()); }

  void beginStep() {
    Piece sent = pieceOf(count, size(), sentPiece()), received = receivedPiece();
    if (received.count > 0)
      receives.receive(previous, tag, step < size() - 1 ? arrived.data() : at(received.begin),
                       received.count * elementBytes);
    if (sent.count > 0)
      sends.send(next, tag, at(sent.begin), sent.count * elementBytes);
  }

  void addArrived() {
    Piece piece = receivedPiece();
    void *target = at(piece.begin);
    const void *pair[2] = {arrived.data(), target};
    sum(&target, 1, pair, 2, piece.count);
  }

  const size_t next, previous;
  std::vector<char> arrived;
  size_t step = 0;
};

} // namespace

std::unique_ptr<Communication> makeRingAllReduce(Transport &transport, const Group &group, uint64_t tag,
                                                 plan::DType type, size_t count) {
  return std::make_unique<RingAllReduce>(transport, group, tag, type, count);
}

} // namespace dg::detail
