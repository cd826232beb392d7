// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads of one process: the Transport of tests. A message is copied straight from the sender's buffer
// to the receiver's when both have been posted, so a program that needs hidden buffering to finish hangs here and is
// found.
#pragma once

#include "runtime/transport/Transport.h"

#include <memory>
#include <vector>

namespace dg {

/// One transport per rank, which know each other; index = rank. Each may be used by one thread at a time, different
/// ones by different threads at once. They may be destroyed in any order; a destroyed one gives up its open requests.
/// With `sharedBytes` each has that much memory that all share (Transport::hostMemory), where the system gives it.
std::vector<std::unique_ptr<Transport>> makeInProcessTransports(int64_t numRanks, uint32_t maxRequests = 1024,
                                                                size_t sharedBytes = 0);

} // namespace dg
