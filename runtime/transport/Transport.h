// SPDX-License-Identifier: Apache-2.0
// Messages between ranks. One interface under one conformance suite: UCX inside a host and where the network is
// trusted, TLS between hosts elsewhere, and one in a process for tests. Everything is started and polled: nothing here
// blocks, so every wait above it has its own deadline.
#pragma once

#include "runtime/support/Progress.h"
#include "runtime/support/Status.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace dg {

class HostMemory;

/// Tags are below 2^48 and ranks below 2^16: a message carries both in one word. Anything else is a failed request.
inline constexpr uint64_t maxTag = (uint64_t(1) << 48) - 1;
inline constexpr int64_t maxRanks = int64_t(1) << 16;

/// Point-to-point messages of one rank. Messages with equal (peer, tag) arrive in the order they were sent; sizes of a
/// send and its receive must be equal. One thread at a time may call a Transport. No call allocates after set-up:
/// requests come from a fixed pool, whose size is given when the transport is made.
class Transport {
public:
  using Request = uint32_t;
  /// What could not be started. look() says failed, once and for ever.
  static constexpr Request refused = UINT32_MAX;
  virtual ~Transport() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t numRanks() const = 0;

  /// `data` stays untouched by the caller until look() says done.
  virtual Request startSend(int64_t peer, uint64_t tag, const void *data, size_t bytes) = 0;
  virtual Request startReceive(int64_t peer, uint64_t tag, void *data, size_t bytes) = 0;
  /// Makes progress on all open requests.
  virtual void advance() = 0;
  /// How the request stands, without making progress; done and failed release it.
  virtual Progress look(Request request) = 0;
  /// Makes progress where the request needs it, then looks.
  Progress test(Request request) {
    Progress progress = look(request);
    if (progress != Progress::pending)
      return progress;
    advance();
    return look(request);
  }
  /// Whether at least half of the requests are free. Who can do with fewer opens no more when it is not so.
  virtual bool hasRoom() const = 0;
  /// Why a request failed: peer, tag and cause. Valid after a look() that returned failed.
  virtual Status failure() const = 0;
  /// Gives up every open request, so that their buffers can be freed. For the way out.
  virtual void cancelAll() = 0;
  /// Grows whenever something of a message from or to `peer` has moved: who waits for long sees whether it waits in
  /// vain.
  virtual uint64_t activity(int64_t peer) const = 0;
  /// The memory that this rank shares with others of its host; null when there is none. Owned by the transport.
  virtual HostMemory *hostMemory() { return nullptr; }
};

} // namespace dg
