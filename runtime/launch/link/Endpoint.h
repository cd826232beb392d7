// SPDX-License-Identifier: Apache-2.0
// Where launchers meet, as text and as socket addresses: HOST:PORT, [IPV6]:PORT, several of them separated by commas,
// or unix:NAME for launchers of one host.
#pragma once

#include "runtime/support/Status.h"

#include <string>
#include <sys/socket.h>
#include <vector>

namespace dg {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t bytes = 0;
  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&storage); }
};

/// The addresses behind an endpoint. A port that is not given is 0. Fails (usage) on text that is no endpoint, and on
/// names that cannot be resolved.
Result<std::vector<SocketAddress>> resolveEndpoint(const std::string &endpoint);
/// "10.0.0.1:4711", "[fe80::1]:4711", "unix:NAME".
std::string describeAddress(const SocketAddress &address);
/// The same without its port.
std::string describeHost(const SocketAddress &address);
/// A non-blocking socket that is being connected, or -1 with errno.
int startConnecting(const SocketAddress &address);
/// The local end of a connection, without its port; empty if that is not an internet address.
std::string localAddressOf(int socket);
/// The network interface that holds it.
std::string deviceOf(int socket);
/// Every address of this host that another host may reach.
std::vector<std::string> publicAddresses();

} // namespace dg
