// SPDX-License-Identifier: Apache-2.0
// Socket addresses, and sockets that listen or connect without blocking. Names are resolved elsewhere
// (runtime/launch/link/Endpoint.h).
#pragma once

#include <string>
#include <string_view>
#include <sys/socket.h>

namespace dg {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t bytes = 0; ///< 0: no address
  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&storage); }
};

/// In front of the name of a socket that is in no file system.
inline constexpr std::string_view unixPrefix = "unix:";

/// "10.0.0.1:4711", "[fe80::1]:4711", "unix:NAME".
std::string describeAddress(const SocketAddress &address);
/// The same without its port.
std::string describeHost(const SocketAddress &address);
/// From an address in numbers, as describeHost gives it; without bytes if it is none.
SocketAddress addressFrom(const std::string &host, uint16_t port);
/// The local end of a socket.
SocketAddress addressOf(int socket);
uint16_t portOf(const SocketAddress &address);
/// A non-blocking socket that is being connected, or -1 with errno.
int startConnecting(const SocketAddress &address);
/// A non-blocking socket that listens there and nowhere else, or -1 with errno.
int startListening(const SocketAddress &address);

} // namespace dg
