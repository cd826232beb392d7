// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/link/Handshake.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <string_view>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace dg {

static constexpr std::string_view magic = "DGRDZV2\n";
static constexpr size_t nonceBytes = 32;
static_assert(sizeof(Greeting) == 8);

std::string randomBytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t at = 0; at < count;) {
    ssize_t got = getrandom(bytes.data() + at, count - at, 0);
    if (got > 0)
      at += size_t(got);
    else if (errno != EINTR)
      std::abort(); // a kernel without random numbers
  }
  return bytes;
}

Handshake::Handshake(int descriptor, const Secret &secret, bool isServer)
    : socket(descriptor), secret(secret), isServer(isServer) {}

Handshake::~Handshake() {
  if (socket >= 0)
    close(socket);
}

std::unique_ptr<Handshake> Handshake::asServer(int descriptor, const Secret &secret) {
  std::unique_ptr<Handshake> made(new Handshake(descriptor, secret, true));
  made->serverNonce = randomBytes(nonceBytes);
  made->outgoing.append(magic).append(made->serverNonce);
  return made;
}

std::unique_ptr<Handshake> Handshake::asClient(int descriptor, const Secret &secret, Greeting greeting) {
  std::unique_ptr<Handshake> made(new Handshake(descriptor, secret, false));
  made->who = greeting;
  made->clientNonce = randomBytes(nonceBytes);
  return made;
}

short Handshake::events() const { return short(outgoing.empty() ? POLLIN : POLLIN | POLLOUT); }

bool Handshake::flush() {
  while (!outgoing.empty()) {
    ssize_t written = ::send(socket, outgoing.data(), outgoing.size(), MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0) {
      isBroken = errno != EAGAIN;
      return false;
    }
    outgoing.erase(0, size_t(written));
  }
  return true;
}

/// True when `incoming` has that many bytes. Never reads more: what follows belongs to the link.
bool Handshake::fill(size_t bytes) {
  char buffer[128];
  while (incoming.size() < bytes) {
    ssize_t got = ::recv(socket, buffer, std::min(sizeof buffer, bytes - incoming.size()), 0);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0) {
      isBroken = got == 0 || (errno != EAGAIN && errno != ENOTCONN);
      return false;
    }
    incoming.append(buffer, size_t(got));
  }
  return true;
}

Handshake::State Handshake::refuse() {
  close(std::exchange(socket, -1));
  return state = State::refused;
}

Digest Handshake::prove(const char *side) const {
  std::string text(side);
  text.append(serverNonce).append(clientNonce).append(reinterpret_cast<const char *>(&who), sizeof who);
  return hmacSha256(secret.view(), text);
}

Handshake::State Handshake::advanceServer() {
  constexpr size_t expected = nonceBytes + sizeof(Greeting) + sizeof(Digest);
  if (!flush())
    return isBroken ? refuse() : state;
  if (hasProved)
    return state = State::done;
  if (!fill(expected))
    return isBroken ? refuse() : state;
  clientNonce = incoming.substr(0, nonceBytes);
  std::memcpy(&who, incoming.data() + nonceBytes, sizeof who);
  Digest proof;
  std::memcpy(proof.data(), incoming.data() + nonceBytes + sizeof who, proof.size());
  hasProved = true;
  if (!isEqual(proof, prove("client")))
    return refuse();
  outgoing = asText(prove("server"));
  return advanceServer();
}

Handshake::State Handshake::advanceClient() {
  if (serverNonce.empty()) {
    if (!fill(magic.size() + nonceBytes))
      return isBroken ? refuse() : state;
    if (std::string_view(incoming).substr(0, magic.size()) != magic)
      return refuse();
    serverNonce = incoming.substr(magic.size());
    incoming.clear();
    outgoing = clientNonce;
    outgoing.append(reinterpret_cast<const char *>(&who), sizeof who);
    outgoing.append(asText(prove("client")));
  }
  if (!flush())
    return isBroken ? refuse() : state;
  hasProved = true;
  if (!fill(sizeof(Digest)))
    return isBroken ? refuse() : state;
  Digest proof;
  std::memcpy(proof.data(), incoming.data(), proof.size());
  return isEqual(proof, prove("server")) ? state = State::done : refuse();
}

Handshake::State Handshake::advance() {
  if (state != State::going)
    return state;
  return isServer ? advanceServer() : advanceClient();
}

std::unique_ptr<NodeLink> Handshake::takeLink() {
  Digest key = prove("session");
  auto link = std::make_unique<NodeLink>(std::exchange(socket, -1), key, isServer);
  forget(key.data(), key.size());
  return link;
}

} // namespace dg
