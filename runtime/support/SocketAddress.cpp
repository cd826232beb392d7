// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/SocketAddress.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

namespace dg {

uint16_t portOf(const SocketAddress &address) {
  return ntohs(address.storage.ss_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in *>(&address.storage)->sin_port
                   : reinterpret_cast<const sockaddr_in6 *>(&address.storage)->sin6_port);
}

std::string describeHost(const SocketAddress &address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in *>(&address.storage)->sin_addr, text, sizeof text);
  else if (address.storage.ss_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6 *>(&address.storage)->sin6_addr, text, sizeof text);
  std::string host = text;
  return host.starts_with("::ffff:") ? host.substr(7) : host; // IPv4 seen through an IPv6 socket
}

std::string describeAddress(const SocketAddress &address) {
  if (address.storage.ss_family == AF_UNIX)
    return std::string(unixPrefix) + std::string(reinterpret_cast<const sockaddr_un *>(&address.storage)->sun_path + 1,
                                                 address.bytes - offsetof(sockaddr_un, sun_path) - 1);
  std::string host = describeHost(address);
  bool isVersion6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", isVersion6 ? "[" : "", host, isVersion6 ? "]" : "", portOf(address));
}

SocketAddress addressFrom(const std::string &host, uint16_t port) {
  SocketAddress address;
  auto *four = reinterpret_cast<sockaddr_in *>(&address.storage);
  auto *six = reinterpret_cast<sockaddr_in6 *>(&address.storage);
  if (inet_pton(AF_INET, host.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    address.bytes = sizeof *four;
  } else if (inet_pton(AF_INET6, host.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    address.bytes = sizeof *six;
  }
  return address;
}

SocketAddress addressOf(int socket) {
  SocketAddress address;
  address.bytes = sizeof address.storage;
  if (getsockname(socket, reinterpret_cast<sockaddr *>(&address.storage), &address.bytes) != 0)
    address.bytes = 0;
  return address;
}

int startConnecting(const SocketAddress &address) {
  int socket = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0)
    return -1;
  int on = 1;
  if (address.storage.ss_family != AF_UNIX)
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(socket, address.get(), address.bytes) == 0 || errno == EINPROGRESS)
    return socket;
  int error = errno;
  close(socket);
  errno = error;
  return -1;
}

int startListening(const SocketAddress &address) {
  int socket = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0)
    return -1;
  int on = 1, off = 0;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.storage.ss_family == AF_INET6)
    setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off); // IPv4 comes in here too
  if (bind(socket, address.get(), address.bytes) == 0 && ::listen(socket, 1024) == 0)
    return socket;
  int error = errno;
  close(socket);
  errno = error;
  return -1;
}

} // namespace dg
