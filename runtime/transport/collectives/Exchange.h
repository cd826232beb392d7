// SPDX-License-Identifier: Apache-2.0
// What the collectives share: one open request per group member and direction, polled without allocating, and the words
// for "waits for" and "failed".
#pragma once

#include "runtime/transport/collectives/Collectives.h"

#include <optional>

namespace dg::detail {

/// At most one open request for each member of a group, all of the same kind (say, the receives of one phase).
class Exchange {
public:
  Exchange(Transport &transport, const Group &group)
      : transport(transport), ranks(group.ranks), open(group.ranks.size()) {}

  void send(size_t member, uint64_t tag, const void *data, size_t bytes) {
    hold(member, transport.startSend(ranks[member], tag, data, bytes));
  }
  void receive(size_t member, uint64_t tag, void *data, size_t bytes) {
    hold(member, transport.startReceive(ranks[member], tag, data, bytes));
  }

  /// Looks at every open request. `failed` as soon as one failed, `done` when none is open.
  Progress poll();
  bool isOpen(size_t member) const { return open[member].has_value(); }
  size_t numOpen() const { return count; }
  /// The first member whose request is open; only if numOpen() > 0.
  int64_t firstOpenRank() const;

private:
  void hold(size_t member, Transport::Request request) {
    open[member] = request;
    ++count;
  }

  Transport &transport;
  const std::vector<int64_t> ranks;
  std::vector<std::optional<Transport::Request>> open;
  size_t count = 0;
};

/// State and words that all collectives have. A subclass starts in begin() and moves on in advance().
class GroupCommunication : public Communication {
public:
  GroupCommunication(Transport &transport, Group members)
      : transport(transport), group(std::move(members)), sends(transport, group), receives(transport, group) {}

  void start(void *input, void *output) final;
  Progress goOn() final;
  Transport *messages() const final { return &transport; }
  int64_t waitsFor() const final;
  Status failure() const final { return failed; }

protected:
  virtual void begin(void *input, void *output) = 0;
  /// Called while requests may have changed; done, pending or failed (with the reason in the transport).
  virtual Progress advance() = 0;
  /// Where to look for whom it waits; never null.
  virtual const Exchange *waitingExchange() const { return receives.numOpen() > 0 ? &receives : &sends; }
  size_t size() const { return group.ranks.size(); }
  void fail(Status status) { failed = std::move(status); }

  Transport &transport;
  const Group group;
  Exchange sends, receives;

private:
  Progress state = Progress::done;
  Status failed = Status::ok();
};

/// Piece `index` of `count` elements cut into `pieces` of equal size, a multiple of 64 elements except at the end; some
/// may be empty.
struct Piece {
  size_t begin, count;
};
Piece pieceOf(size_t count, size_t pieces, size_t index);

} // namespace dg::detail
