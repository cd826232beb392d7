// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/link/Endpoint.h"

#include <charconv>
#include <cstddef>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace dg {
namespace {

SocketAddress unixAddress(const std::string &name) {
  SocketAddress address;
  sockaddr_un place = {};
  place.sun_family = AF_UNIX;
  size_t length = std::min(name.size(), sizeof place.sun_path - 1);
  std::memcpy(place.sun_path + 1, name.data(), length); // a zero first: the name is in no file system
  address.bytes = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length);
  std::memcpy(&address.storage, &place, sizeof place);
  return address;
}

/// "HOST:PORT", "[V6]:PORT", "HOST" or "V6" as two texts.
bool splitPort(const std::string &text, std::string &host, std::string &port) {
  port = "0";
  if (text.starts_with("[")) {
    size_t end = text.find(']');
    if (end == std::string::npos)
      return false;
    host = text.substr(1, end - 1);
    if (end + 1 == text.size())
      return true;
    port = text.substr(end + 2);
    return text[end + 1] == ':';
  }
  size_t colon = text.find(':');
  host = text;
  if (colon == std::string::npos || text.find(':', colon + 1) != std::string::npos)
    return true; // a name alone, or an IPv6 address alone
  host = text.substr(0, colon);
  port = text.substr(colon + 1);
  return true;
}

bool isPort(const std::string &text) {
  int value = -1;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= 65535;
}

Status resolveOne(const std::string &text, std::vector<SocketAddress> &addresses) {
  if (text.starts_with(unixPrefix)) {
    addresses.push_back(unixAddress(text.substr(unixPrefix.size())));
    return Status::ok();
  }
  std::string host, port;
  if (!splitPort(text, host, port) || host.empty() || !isPort(port))
    return Status::error(ErrorKind::usage,
                         "--rdzv-endpoint '{}': expected HOST:PORT, as node0:29400 or [fd00::1]:29400, with a port up "
                         "to 65535",
                         text);
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int code = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); code != 0)
    return Status::error(code == EAI_AGAIN ? ErrorKind::lost : ErrorKind::usage,
                         "--rdzv-endpoint '{}': the host '{}' cannot be found: {}", text, host, gai_strerror(code));
  std::unique_ptr<addrinfo, void (*)(addrinfo *)> owner(found, freeaddrinfo);
  for (addrinfo *each = found; each; each = each->ai_next) {
    SocketAddress address;
    address.bytes = each->ai_addrlen;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    addresses.push_back(address);
  }
  return Status::ok();
}

} // namespace

Result<std::vector<SocketAddress>> resolveEndpoint(const std::string &endpoint) {
  std::vector<SocketAddress> addresses;
  for (size_t at = 0; at <= endpoint.size();) {
    size_t comma = std::min(endpoint.find(',', at), endpoint.size());
    DG_RETURN_IF_ERROR(resolveOne(endpoint.substr(at, comma - at), addresses));
    at = comma + 1;
  }
  return addresses;
}

template <typename Visit> static void forEachInterface(Visit visit) {
  ifaddrs *list = nullptr;
  if (getifaddrs(&list) != 0)
    return;
  std::unique_ptr<ifaddrs, void (*)(ifaddrs *)> owner(list, freeifaddrs);
  for (ifaddrs *each = list; each; each = each->ifa_next) {
    if (!each->ifa_addr || !(each->ifa_flags & IFF_UP))
      continue;
    SocketAddress address;
    if (each->ifa_addr->sa_family == AF_INET)
      address.bytes = sizeof(sockaddr_in);
    else if (each->ifa_addr->sa_family == AF_INET6)
      address.bytes = sizeof(sockaddr_in6);
    else
      continue;
    std::memcpy(&address.storage, each->ifa_addr, address.bytes);
    visit(*each, address);
  }
}

std::string localAddressOf(int socket) {
  SocketAddress mine;
  mine.bytes = sizeof mine.storage;
  bool isKnown = getsockname(socket, reinterpret_cast<sockaddr *>(&mine.storage), &mine.bytes) == 0;
  return isKnown ? describeHost(mine) : "";
}

std::string deviceOf(int socket) {
  std::string device, host = localAddressOf(socket);
  forEachInterface([&](const ifaddrs &each, const SocketAddress &address) {
    if (describeHost(address) == host)
      device = each.ifa_name;
  });
  return device;
}

std::vector<std::string> publicAddresses() {
  std::vector<std::string> hosts;
  forEachInterface([&](const ifaddrs &each, const SocketAddress &address) {
    bool isLinkLocal = address.storage.ss_family == AF_INET6 &&
                       IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6 *>(&address.storage)->sin6_addr);
    if (!(each.ifa_flags & IFF_LOOPBACK) && !isLinkLocal)
      hosts.push_back(describeHost(address));
  });
  return hosts;
}

} // namespace dg
