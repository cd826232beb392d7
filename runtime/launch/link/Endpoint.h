// SPDX-License-Identifier: Apache-2.0
// Where launchers meet, as text and as socket addresses: HOST:PORT, [IPV6]:PORT, several of them separated by commas,
// or unix:NAME for launchers of one host.
#pragma once

#include "runtime/support/SocketAddress.h"
#include "runtime/support/Status.h"

#include <string>
#include <vector>

namespace dg {

/// The addresses behind an endpoint. A port that is not given is 0. Fails (usage) on text that is no endpoint, and on
/// names that cannot be resolved; lost where the name service does not answer now.
Result<std::vector<SocketAddress>> resolveEndpoint(const std::string &endpoint);
/// The local end of a connection, without its port; empty if that is not an internet address.
std::string localAddressOf(int socket);
/// The network interface that holds it.
std::string deviceOf(int socket);
/// Every address of this host that another host may reach.
std::vector<std::string> publicAddresses();

} // namespace dg
