// SPDX-License-Identifier: Apache-2.0
#include "tools/dgviz/Server.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dg::viz {

namespace {

constexpr std::chrono::milliseconds requestTime(2000);
constexpr size_t maxRequestBytes = 16384;

class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
  operator int() const { return number; }

private:
  int number;
};

using Deadline = std::chrono::steady_clock::time_point;

/// False when the deadline has passed first.
bool waitFor(int socket, short events, Deadline deadline) {
  pollfd entry{socket, events, 0};
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return left.count() > 0 && poll(&entry, 1, int(left.count())) > 0;
}

std::string readRequest(int socket, Deadline deadline) {
  std::string request;
  while (request.size() < maxRequestBytes && request.find("\r\n\r\n") == std::string::npos &&
         waitFor(socket, POLLIN, deadline)) {
    char buffer[4096];
    ssize_t count = recv(socket, buffer, sizeof buffer, 0);
    if (count <= 0)
      break;
    request.append(buffer, size_t(count));
  }
  return request;
}

void sendAll(int socket, std::string_view text, Deadline deadline) {
  while (!text.empty() && waitFor(socket, POLLOUT, deadline)) {
    ssize_t count = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (count <= 0)
      return;
    text.remove_prefix(size_t(count));
  }
}

std::string headerOf(const std::string &request, std::string_view name) {
  for (size_t line = request.find("\r\n"); line != std::string::npos; line = request.find("\r\n", line + 2)) {
    std::string_view rest = std::string_view(request).substr(line + 2);
    if (rest.size() <= name.size() || strncasecmp(rest.data(), name.data(), name.size()) != 0 ||
        rest[name.size()] != ':')
      continue;
    rest = rest.substr(name.size() + 1);
    rest = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return std::string(rest);
  }
  return "";
}

std::string answerTo(const std::string &request, const std::string &page, uint16_t port) {
  auto answer = [](const char *status, std::string_view body, const char *type) {
    return fmt::format("HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n"
                       "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
                       "Cross-Origin-Resource-Policy: same-origin\r\n\r\n{}",
                       status, type, body.size(), body);
  };
  std::string host = headerOf(request, "Host");
  if (host != fmt::format("127.0.0.1:{}", port) && host != fmt::format("localhost:{}", port))
    return answer("403 Forbidden", "This page is for 127.0.0.1 only.\n", "text/plain");
  if (request.rfind("GET / ", 0) == 0)
    return answer("200 OK", page, "text/html");
  if (request.rfind("GET ", 0) == 0)
    return answer("404 Not Found", "There is only the page at /.\n", "text/plain");
  return answer("405 Method Not Allowed", "Only GET is answered.\n", "text/plain");
}

Status cannot(const char *what, uint16_t port) {
  return Status::error(ErrorKind::runFailed, "--serve: {} 127.0.0.1:{}: {}: choose another --port, or 0 for a free one",
                       what, port, std::strerror(errno));
}

} // namespace

Status serve(const std::string &page, uint16_t port, const std::function<void(const std::string &)> &announce) {
  sigset_t stopSignals;
  sigemptyset(&stopSignals);
  sigaddset(&stopSignals, SIGINT);
  sigaddset(&stopSignals, SIGTERM);
  sigprocmask(SIG_BLOCK, &stopSignals, nullptr);
  Descriptor stop(signalfd(-1, &stopSignals, SFD_CLOEXEC));
  Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t length = sizeof address;
  if (stop < 0 || listener < 0 || bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof address) != 0 ||
      listen(listener, 16) != 0 || getsockname(listener, reinterpret_cast<sockaddr *>(&address), &length) != 0)
    return cannot("nothing can be answered at", port);
  uint16_t taken = ntohs(address.sin_port);
  announce(fmt::format("http://127.0.0.1:{}/", taken));
  while (true) {
    pollfd entries[] = {{listener, POLLIN, 0}, {stop, POLLIN, 0}};
    if (poll(entries, 2, -1) < 0 && errno != EINTR) // idle until a request or a signal: both end the wait
      return cannot("waiting failed at", taken);
    if (entries[1].revents)
      return Status::ok();
    if (!entries[0].revents)
      continue;
    Descriptor client(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client < 0)
      continue;
    Deadline deadline = std::chrono::steady_clock::now() + requestTime;
    sendAll(client, answerTo(readRequest(client, deadline), page, taken), deadline);
  }
}

} // namespace dg::viz
