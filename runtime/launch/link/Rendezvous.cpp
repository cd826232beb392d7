// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/link/Rendezvous.h"

#include "runtime/launch/link/HeldSignals.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dg {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// Strangers at the door: how long one may stay silent, and how many may stand there before the oldest has to go.
static constexpr milliseconds visitTime{5000};
static constexpr size_t maxVisitors = 128;
/// How many come in before others have their turn, and how long the door stays shut when there is no descriptor left.
static constexpr size_t acceptsPerTurn = 16;
static constexpr milliseconds restTime{100};
/// Between two attempts, and for one address of an attempt.
static constexpr milliseconds retryTime{200}, addressTime{3000};
/// A busy door may close out one who knows the secret; twice in a row is a wrong secret.
static constexpr int refusalsUntilBelieved = 3;
static constexpr size_t shortestSecret = 16;

void forgetSecretInEnvironment() {
  if (char *text = std::getenv("DG_SECRET"))
    forget(text, std::strlen(text));
  unsetenv("DG_SECRET");
  unsetenv("DG_SECRET_FILE");
}

Result<Secret> readSecret() {
  const char *path = std::getenv("DG_SECRET_FILE"), *text = std::getenv("DG_SECRET");
  std::string where = "DG_SECRET";
  Secret secret(text ? text : "");
  if (path && *path) {
    where = fmt::format("DG_SECRET_FILE={}", path);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
      int error = errno;
      if (file >= 0)
        close(file);
      return Status::error(ErrorKind::usage, "{}: cannot be read: {}", where, std::strerror(error));
    }
    char bytes[4096];
    ssize_t got = read(file, bytes, sizeof bytes);
    close(file);
    if (status.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH))
      return Status::error(ErrorKind::usage, "{}: others may read or write it (mode {:o}); run chmod 600 {}", where,
                           unsigned(status.st_mode & 07777), path);
    std::string_view line(bytes, size_t(std::max<ssize_t>(got, 0)));
    while (line.ends_with('\n') || line.ends_with('\r'))
      line.remove_suffix(1);
    secret = Secret(line);
    forget(bytes, sizeof bytes);
  }
  forgetSecretInEnvironment();
  if (secret.isEmpty())
    return Status::error(ErrorKind::usage,
                         "several nodes need a secret that they share: set DG_SECRET_FILE to a file only you can read, "
                         "or DG_SECRET, on every node; make one with: (umask 077; openssl rand -hex 32 > secret)");
  if (secret.view().size() < shortestSecret)
    return Status::error(ErrorKind::usage, "{}: found a secret of {} characters, expected at least {}", where,
                         secret.view().size(), shortestSecret);
  return secret;
}

static Status listenError(const std::string &where, int error) {
  return Status::error(ErrorKind::runFailed, "cannot listen at {}: {}", where, std::strerror(error));
}

Result<std::unique_ptr<RendezvousPoint>> RendezvousPoint::listen(const std::string &endpoint, Secret secret) {
  std::vector<SocketAddress> addresses;
  if (endpoint.empty()) {
    for (int family : {AF_INET6, AF_INET}) {
      SocketAddress any; // zeros: every interface, any port
      any.storage.ss_family = sa_family_t(family);
      any.bytes = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
      addresses.push_back(any);
    }
  } else {
    auto resolved = resolveEndpoint(endpoint);
    if (!resolved)
      return resolved.status();
    addresses = std::move(*resolved);
  }
  for (const SocketAddress &address : addresses)
    if (int socket = startListening(address); socket >= 0) {
      const SocketAddress place = addressOf(socket);
      if (place.bytes != 0)
        return std::unique_ptr<RendezvousPoint>(new RendezvousPoint(socket, place, std::move(secret)));
      const int error = errno; // nobody could be told where to come
      close(socket);
      errno = error;
    }
  return listenError(endpoint.empty() ? "any interface" : endpoint, errno);
}

Result<std::unique_ptr<RendezvousPoint>> RendezvousPoint::listenOnHost(Secret secret) {
  std::string name;
  for (char byte : randomBytes(8))
    name += fmt::format("{:02x}", uint8_t(byte));
  std::string endpoint = fmt::format("unix:dg-{}", name);
  return listen(endpoint, std::move(secret));
}

RendezvousPoint::~RendezvousPoint() { close(listener); }

std::string RendezvousPoint::endpoint() const {
  std::string host = describeHost(place);
  if (place.storage.ss_family == AF_UNIX || (host != "::" && host != "0.0.0.0"))
    return describeAddress(place);
  std::string port = describeAddress(place);
  port.erase(0, port.rfind(':'));
  std::vector<std::string> all;
  for (const std::string &each : publicAddresses())
    all.push_back((each.find(':') == std::string::npos ? each : "[" + each + "]") + port);
  return all.empty() ? "127.0.0.1" + port : fmt::format("{}", fmt::join(all, ","));
}

std::vector<int> RendezvousPoint::descriptors() const {
  std::vector<int> all = {listener};
  for (const Visitor &visitor : visitors)
    all.push_back(visitor.handshake->descriptor());
  for (const Arrival &arrival : arrivals)
    all.push_back(arrival.link->descriptor());
  return all;
}

void RendezvousPoint::accept() {
  for (size_t count = 0; count < acceptsPerTurn; ++count) {
    Visitor visitor;
    SocketAddress from;
    from.bytes = sizeof from.storage;
    int socket =
        accept4(listener, reinterpret_cast<sockaddr *>(&from.storage), &from.bytes, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
      // Who waits stays in the queue of the socket, which would wake the launcher again and again.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        restsUntil = deadlineIn(restTime);
        closeOutOldest();
      }
      return;
    }
    int on = 1;
    if (from.storage.ss_family != AF_UNIX)
      setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (visitors.size() == maxVisitors)
      closeOutOldest();
    visitor.handshake = Handshake::asServer(socket, secret);
    visitor.deadline = deadlineIn(visitTime);
    visitor.address = from.storage.ss_family == AF_UNIX ? "this host" : describeHost(from);
    visitors.push_back(std::move(visitor));
    advance(visitors.back());
  }
}

void RendezvousPoint::closeOutOldest() {
  if (visitors.empty())
    return;
  visitors.pop_front();
  ++refused;
}

void RendezvousPoint::advance(Visitor &visitor) {
  if (!visitor.handshake)
    return;
  Handshake::State state = visitor.handshake->advance();
  if (state == Handshake::State::going)
    return;
  if (state == Handshake::State::done)
    arrivals.push_back({visitor.handshake->greeting(), visitor.handshake->takeLink(), visitor.address});
  else
    ++refused;
  visitor.handshake.reset();
}

void RendezvousPoint::addTo(PollSet &set) {
  if (Clock::now() >= restsUntil)
    set.add(listener, POLLIN, [this] { accept(); });
  for (Visitor &visitor : visitors) {
    int descriptor = visitor.handshake->descriptor();
    set.add(descriptor, visitor.handshake->events(), [this, descriptor] {
      for (Visitor &each : visitors) // accept() may have closed it out meanwhile
        if (each.handshake && each.handshake->descriptor() == descriptor)
          return advance(each);
    });
  }
}

std::vector<Arrival> RendezvousPoint::takeArrivals() {
  for (Visitor &visitor : visitors)
    if (visitor.handshake && Clock::now() > visitor.deadline) {
      visitor.handshake.reset();
      ++refused;
    }
  std::erase_if(visitors, [](const Visitor &visitor) { return !visitor.handshake; });
  return std::exchange(arrivals, {});
}

RendezvousAttempt::RendezvousAttempt(std::vector<SocketAddress> addresses, Secret secret, Greeting greeting)
    : addresses(std::move(addresses)), secret(std::move(secret)), greeting(greeting) {
  startNext();
}

void RendezvousAttempt::startNext() {
  handshake.reset();
  while (!handshake && next < addresses.size())
    if (int socket = startConnecting(addresses[next++]); socket >= 0)
      handshake = Handshake::asClient(socket, secret, greeting);
}

void RendezvousAttempt::skip() { startNext(); }

void RendezvousAttempt::addTo(PollSet &set) {
  if (handshake)
    set.add(handshake->descriptor(), handshake->events(), [] {});
}

Handshake::State RendezvousAttempt::state() {
  while (handshake) {
    Handshake::State state = handshake->advance();
    if (state != Handshake::State::refused)
      return state;
    hasWrongSecret = hasWrongSecret || handshake->isSecretWrong();
    startNext();
  }
  return Handshake::State::refused;
}

Result<std::unique_ptr<NodeLink>> joinRendezvous(const std::vector<SocketAddress> &addresses, const Secret &secret,
                                                 Greeting greeting, Deadline deadline) {
  int refusals = 0;
  while (true) {
    RendezvousAttempt attempt(addresses, secret, greeting);
    Deadline addressDeadline = deadlineIn(addressTime);
    while (attempt.state() == Handshake::State::going && Clock::now() < deadline && !isStopAsked()) {
      PollSet set;
      attempt.addTo(set);
      set.wait(retryTime);
      if (Clock::now() > addressDeadline) {
        attempt.skip();
        addressDeadline = deadlineIn(addressTime);
      }
    }
    if (attempt.state() == Handshake::State::done)
      return attempt.takeLink();
    std::string where = describeAddress(addresses.front());
    if (attempt.isSecretWrong() && ++refusals == refusalsUntilBelieved)
      return Status::error(ErrorKind::usage,
                           "the rendezvous at {} does not know this secret: give all nodes the same DG_SECRET_FILE or "
                           "DG_SECRET",
                           where);
    if (Clock::now() > deadline || isStopAsked())
      return Status::error(ErrorKind::lost,
                           "nobody answers at the rendezvous {}: is dgrun with --node-rank 0 running there, and may "
                           "this host connect to it?",
                           where);
    PollSet pause;
    pause.wait(retryTime);
  }
}

} // namespace dg
