// SPDX-License-Identifier: Apache-2.0
// Runs a function on N ranks of any kind of transport and gathers what they complain about.
#pragma once

#include "runtime/transport/Transport.h"

#include <functional>
#include <string>
#include <vector>

namespace dg::test {

enum class Kind {
  inProcess,       ///< threads, InProcessTransport
  mappedThreads,   ///< the same, with memory that all share
  ucxThreads,      ///< threads, each with its own UCX worker
  ucxProcesses,    ///< forked by launchLocal, UCX
  mappedProcesses, ///< the same, with memory that all map
  tcpProcesses,    ///< the same as ucxProcesses, but over TCP
  twoHosts,        ///< the same as mappedProcesses, but the last half of the ranks plays another host: TCP between them
  tlsThreads,      ///< threads, each on a host of its own: TLS between them
  tlsProcesses,    ///< the same as tcpProcesses, but over TLS
  secureHosts,     ///< the same as twoHosts, but TLS between them
};
const char *nameOf(Kind kind);

/// What a rank does; an empty string means that all was well.
using Body = std::function<std::string(Transport &)>;

/// Runs `body` on every rank at once and returns all complaints. A transport is destroyed after all bodies have
/// returned.
std::string runRanks(Kind kind, int64_t numRanks, const Body &body, uint32_t maxRequests = 1024);

/// The memory of the calling rank for `bytes`: of its host, when its transport has such. Freed in any order.
void *takeMemory(size_t bytes);
void giveMemoryBack(void *pointer);

template <typename T> struct RankAllocator {
  using value_type = T;
  RankAllocator() = default;
  template <typename Other> RankAllocator(const RankAllocator<Other> &) {}
  T *allocate(size_t count) { return static_cast<T *>(takeMemory(count * sizeof(T))); }
  void deallocate(T *pointer, size_t) { giveMemoryBack(pointer); }
  bool operator==(const RankAllocator &) const { return true; }
};
/// What collectives may be started with.
template <typename T> using Buffer = std::vector<T, RankAllocator<T>>;

/// Polls until the request ends or a minute has passed; "" when done, else why not.
std::string await(Transport &transport, Transport::Request request);

} // namespace dg::test
