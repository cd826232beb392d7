// SPDX-License-Identifier: Apache-2.0
// One thread and one wait for all connections: a client that is slow or says nothing keeps nobody else waiting.
#include "tools/dgviz/Server.h"
#include "tools/dgviz/HttpAnswer.h"

#include "runtime/support/FileWriting.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dg::viz {

namespace {

/// For a request and its answer; a page may have some megabytes.
constexpr std::chrono::seconds requestTime(10);
constexpr size_t maxRequestBytes = 16384, maxClients = 64;

class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
  operator int() const { return number; }

private:
  int number;
};

using Clock = std::chrono::steady_clock;

/// One connection: its request is read, then its answer is sent, both until one deadline. Nothing in it waits.
class Client {
public:
  explicit Client(int socket) : socket(socket), deadline(Clock::now() + requestTime) {}

  /// What it waits for: a request, or room for more of the answer.
  pollfd waiting() const { return {socket, short(answer.empty() ? POLLIN : POLLOUT), 0}; }
  Clock::time_point until() const { return deadline; }

  /// Goes on as far as the socket allows; false when the connection is over.
  bool proceed(const std::string &page, uint16_t port, const std::string &path) {
    if (answer.empty() && !read())
      return false;
    if (answer.empty() && (request.find("\r\n\r\n") != std::string::npos || request.size() >= maxRequestBytes))
      answer = answerTo(request, page, port, path);
    return answer.empty() || write();
  }

private:
  bool read() {
    char buffer[4096];
    ssize_t count = recv(socket, buffer, sizeof buffer, 0);
    if (count > 0)
      request.append(buffer, size_t(count));
    return count > 0 || (count < 0 && isTemporary());
  }

  bool write() {
    ssize_t count = send(socket, answer.data() + numSent, answer.size() - numSent, MSG_NOSIGNAL);
    if (count > 0)
      numSent += size_t(count);
    return numSent < answer.size() && (count > 0 || isTemporary());
  }

  static bool isTemporary() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

  Descriptor socket;
  Clock::time_point deadline;
  std::string request, answer;
  size_t numSent = 0;
};

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
  Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
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
  // Loopback is every user's: only who reads what is printed knows the path.
  const std::string path = fmt::format("/{}{}/", randomSuffix(), randomSuffix());
  announce(fmt::format("http://127.0.0.1:{}{}", taken, path));
  std::vector<Client> clients;
  while (true) {
    std::vector<pollfd> entries = {{stop, POLLIN, 0}, {listener, POLLIN, 0}};
    int waitMs = -1; // without a client: idle until a request or a signal, which both end the wait
    for (const Client &client : clients) {
      entries.push_back(client.waiting());
      auto left = std::chrono::ceil<std::chrono::milliseconds>(client.until() - Clock::now()).count();
      waitMs = int(std::max<int64_t>(0, waitMs < 0 ? left : std::min<int64_t>(waitMs, left)));
    }
    if (clients.size() >= maxClients)
      entries[1].events = 0; // further ones wait in the listener's queue
    if (poll(entries.data(), entries.size(), waitMs) < 0 && errno != EINTR)
      return cannot("waiting failed at", taken);
    if (entries[0].revents)
      return Status::ok();
    std::vector<Client> kept;
    for (size_t i = 0; i < clients.size(); ++i)
      if ((entries[i + 2].revents == 0 || clients[i].proceed(page, taken, path)) && Clock::now() < clients[i].until())
        kept.push_back(std::move(clients[i]));
    clients = std::move(kept);
    if (entries[1].revents)
      if (int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); socket >= 0)
        clients.emplace_back(socket);
  }
}

} // namespace dg::viz
