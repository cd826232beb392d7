// SPDX-License-Identifier: Apache-2.0
// The Transport of real runs: ranks that are processes, over UCX: shared memory between ranks of one host, TCP between
// hosts. UCX's types stay in UcxTransport.cpp.
#pragma once

#include "runtime/transport/AddressExchange.h"
#include "runtime/transport/Transport.h"

#include <memory>
#include <string>

namespace dg {

struct UcxOptions {
  uint32_t maxRequests = 1024; ///< open at once: sends and receives that look() has not yet ended
  /// Ranks of other hosts are reached over TCP, and only then a port is opened; otherwise they are not reached.
  bool spansHosts = false;
  std::string hostId;        ///< ranks with equal ids share memory
  std::string networkDevice; ///< the interface towards the other hosts; empty: any
  /// Memory that the ranks of a host share (Transport::hostMemory), for this rank's arena; 0: none, on every rank.
  size_t sharedBytes = 0;
  /// UCX may end the process by a signal when a connection breaks in the middle of a message. Then this is called in
  /// the handler of that signal; it must not return. Null: the signal acts.
  void (*onCrash)(int signal) = nullptr;
};

/// Joins the job: opens a worker, exchanges addresses, and connects to every rank; returns when all ranks have done so.
/// On one host it uses shared memory only: no port is opened, nothing gets a name that outlives the process. Call it
/// after fork, never before. Threads: made, used and destroyed by one thread at a time, any thread.
Result<std::unique_ptr<Transport>> makeUcxTransport(int64_t rank, int64_t numRanks, const AddressExchange &exchange,
                                                    const UcxOptions &options = {});

} // namespace dg
