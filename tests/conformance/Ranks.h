// SPDX-License-Identifier: Apache-2.0
// Runs a function on N ranks of any kind of transport and gathers what they complain about.
#pragma once

#include "runtime/transport/Transport.h"

#include <functional>
#include <string>

namespace dg::test {

enum class Kind {
  inProcess,    ///< threads, InProcessTransport
  ucxThreads,   ///< threads, each with its own UCX worker
  ucxProcesses, ///< forked by launchLocal, UCX
};
const char *nameOf(Kind kind);

/// What a rank does; an empty string means that all was well.
using Body = std::function<std::string(Transport &)>;

/// Runs `body` on every rank at once and returns all complaints. A transport is destroyed after all bodies have
/// returned.
std::string runRanks(Kind kind, int64_t numRanks, const Body &body, uint32_t maxRequests = 1024);

/// Polls until the request ends or a minute has passed; "" when done, else why not.
std::string await(Transport &transport, Transport::Request request);

} // namespace dg::test
