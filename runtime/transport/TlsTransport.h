// SPDX-License-Identifier: Apache-2.0
// The Transport of ranks on hosts that do not trust the network between them: to ranks of other hosts over TLS with a
// key for each pair, to ranks of this host through another transport.
#pragma once

#include "runtime/transport/AddressExchange.h"
#include "runtime/transport/SecureChannel.h"
#include "runtime/transport/Transport.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace dg {

struct TlsOptions {
  uint32_t maxRequests = 1024; ///< open at once with ranks of other hosts
  std::string hostId;          ///< ranks with equal ids are reached through `local`
  std::string address;         ///< of the interface towards the other hosts; nothing listens elsewhere
  std::vector<PairKey> keys;   ///< by rank; those of ranks of this host are not used
  /// For all ranks of other hosts to be connected.
  std::chrono::milliseconds timeout{30'000};
};

/// Joins the job: listens, exchanges addresses, connects to every rank of another host, and stops listening; returns
/// when all ranks have done so. `local` reaches this rank itself and those of its host, and gives its memory. Call it
/// after fork. Threads: made, used and destroyed by one thread at a time, any thread.
Result<std::unique_ptr<Transport>> makeTlsTransport(std::unique_ptr<Transport> local, const AddressExchange &exchange,
                                                    TlsOptions options);

} // namespace dg
