// SPDX-License-Identifier: Apache-2.0
// The Transport of real runs: ranks that are processes, over UCX: shared memory between ranks of one host, TCP between
// hosts. UCX's types stay in UcxTransport.cpp; how the ranks learn each other's addresses is the launcher's business
// and comes in as a function.
#pragma once

#include "runtime/transport/Transport.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace dg {

/// Gives everyone's bytes, by rank, for mine. Called by every rank the same number of times; keeps its own deadline.
using AddressExchange = std::function<Result<std::vector<std::string>>(const std::string &mine)>;

struct UcxOptions {
  uint32_t maxRequests = 1024; ///< open at once: sends and receives that test() has not yet ended
  bool spansHosts = false;     ///< some ranks are on other hosts; only then a port is opened
  std::string hostId;          ///< ranks with equal ids share memory, others use TCP
  std::string networkDevice;   ///< the interface towards the other hosts; empty: any
};

/// Joins the job: opens a worker, exchanges addresses, and connects to every rank; returns when all ranks have done so.
/// On one host it uses shared memory only: no port is opened, nothing gets a name that outlives the process. Call it
/// after fork, never before. Threads: made, used and destroyed by one thread at a time, any thread.
Result<std::unique_ptr<Transport>> makeUcxTransport(int64_t rank, int64_t numRanks, const AddressExchange &exchange,
                                                    UcxOptions options = {});

} // namespace dg
