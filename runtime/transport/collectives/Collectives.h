// SPDX-License-Identifier: Apache-2.0
// Collectives as small state machines over a Transport: made once at set-up (communicator, size, scratch), then started
// and polled in every step without allocating. The bits of a reduction depend on the bracketing that the plan names,
// whatever the routing, so that one plan gives the same bits under every launcher and transport.
// Where all ranks of a group share the memory of their host, they read and write each other's buffers instead of
// sending messages; every buffer that start() is given must then lie in HostMemory::data().
#pragma once

#include "runtime/plan/Bracketing.h"
#include "runtime/plan/Plan.h"
#include "runtime/transport/Transport.h"

#include <memory>
#include <vector>

namespace dg {

/// The ranks that take part, in the order of their coordinate, and this rank's position among them.
struct Group {
  std::vector<int64_t> ranks;
  size_t self = 0;
};

/// A prepared communication. start() may be called again after it was done.
class Communication {
public:
  static constexpr int64_t nobody = -1;
  virtual ~Communication() = default;
  /// Begins with these buffers (in place: input == output).
  virtual void start(void *input, void *output) = 0;
  /// Makes progress, then goes on with what has arrived; never blocks.
  Progress poll() {
    if (Transport *transport = messages())
      transport->advance();
    return goOn();
  }
  /// Goes on with what has arrived. Who polls several lets messages() advance once for all of them.
  virtual Progress goOn() = 0;
  /// The transport whose messages it waits for; null where it looks into the memory of others.
  virtual Transport *messages() const { return nullptr; }
  /// The rank that it waits for, or nobody where it cannot tell. Valid while pending or failed.
  virtual int64_t waitsFor() const = 0;
  virtual Status failure() const = 0;
};

/// The memory that these ranks and this one share, or null when they do not.
HostMemory *sharedBy(Transport &transport, const std::vector<int64_t> &ranks);

/// A dense row-major tensor cut into blocks along one dimension, as a collective sees it: `outer` rows, each of
/// `group size` blocks of `inner` elements.
struct BlockShape {
  size_t outer = 1, inner = 1;
};

/// How an all-reduce moves its data; the bits of the result are the same.
enum class AllReduceRoute {
  best,      ///< in place over the memory of the host; else as the bracketing suggests; else by size
  direct,    ///< everyone sends everything to everyone: one message time
  scattered, ///< position i sums piece i, then the pieces are gathered: 2 (n-1)/n of the bytes
};

/// Sums `count` elements over the group in this bracketing, in place or not. `tag` is unique per communicator and
/// collective (its low 16 bits are zero and free for the algorithm's own use).
std::unique_ptr<Communication> makeAllReduce(Transport &, const Group &, uint64_t tag, plan::DType, size_t count,
                                             plan::Bracketing bracketing = {},
                                             AllReduceRoute route = AllReduceRoute::best);
/// output[outer][group][inner] from every rank's input[outer][inner]. They do not overlap, except that with outer == 1
/// the input may be this rank's own block of the output.
std::unique_ptr<Communication> makeAllGather(Transport &, const Group &, uint64_t tag, plan::DType, BlockShape);
/// output[outer][inner] = this rank's block of the sum of every input[outer][group][inner]. The output may begin where
/// the input does.
std::unique_ptr<Communication> makeReduceScatter(Transport &, const Group &, uint64_t tag, plan::DType, BlockShape);
/// One message to or from one rank: a send reads `input`, a receive writes `output` of start().
std::unique_ptr<Communication> makeSend(Transport &, int64_t peer, uint64_t tag, size_t bytes);
std::unique_ptr<Communication> makeReceive(Transport &, int64_t peer, uint64_t tag, size_t bytes);

} // namespace dg
