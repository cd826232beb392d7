// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/TlsMeeting.h"

#include "runtime/support/Secret.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <unistd.h>

namespace dg::detail {

using std::chrono::milliseconds;

/// Strangers at the door: how many are let in at once, in a turn, and for how long.
static constexpr size_t maxVisitors = 128, acceptsPerTurn = 16;
static constexpr milliseconds visitTime{5000};
/// A turn, and the pause before a rank tries again.
static constexpr milliseconds turnTime{20}, retryTime{100};

Result<std::unique_ptr<TlsMeeting>> TlsMeeting::open(int64_t rank, const std::string &address,
                                                     std::vector<PairKey> keys) {
  std::unique_ptr<TlsMeeting> made(new TlsMeeting);
  made->self = rank;
  made->keys = std::move(keys);
  const SocketAddress wanted = addressFrom(address, 0);
  made->listener = wanted.bytes ? startListening(wanted) : -1;
  if (made->listener >= 0)
    made->place = addressOf(made->listener);
  if (made->place.bytes == 0)
    return Status::error(ErrorKind::runFailed, "rank {}: cannot listen at '{}' for the other hosts: {}", rank, address,
                         wanted.bytes ? std::strerror(errno) : "this is not an address");
  auto context = SecureContext::make([meeting = made.get()](PairName pair) -> const PairKey * {
    bool isExpected = pair.server == uint32_t(meeting->self) && pair.client > pair.server &&
                      pair.client < meeting->places.size() && meeting->isMissing(pair.client);
    return isExpected ? &meeting->keys[pair.client] : nullptr;
  });
  if (!context)
    return context.status();
  made->context = std::move(*context);
  return made;
}

TlsMeeting::~TlsMeeting() {
  if (listener >= 0)
    close(listener);
  forget(keys.data(), keys.size() * sizeof(PairKey));
}

void TlsMeeting::accept() {
  isListenerTired = false;
  for (size_t count = 0; count < acceptsPerTurn; ++count) {
    int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
      // Out of descriptors: who has waited longest makes room, and the listener is left alone for a turn.
      isListenerTired = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (isListenerTired && !visitors.empty())
        visitors.pop_front();
      return;
    }
    if (visitors.size() == maxVisitors)
      visitors.pop_front();
    visitors.push_back({SecureChannel::asServer(*context, socket), Clock::now() + visitTime});
  }
}

void TlsMeeting::hearVisitors() {
  for (Visitor &visitor : visitors) {
    SecureChannel::State state = visitor.channel->shakeHands();
    if (state == SecureChannel::State::done && isMissing(visitor.channel->pair().client))
      channels[visitor.channel->pair().client] = std::move(visitor.channel);
    else if (state != SecureChannel::State::going || Clock::now() > visitor.deadline) {
      ++numRefused;
      lastRefusal = visitor.channel->failure().empty() ? "silent for too long" : visitor.channel->failure();
      visitor.channel.reset();
    }
  }
  std::erase_if(visitors, [](const Visitor &visitor) { return !visitor.channel; });
}

/// Comes to the door of a rank, again and again: a busy door may have closed this rank out.
void TlsMeeting::attempt(size_t peer) {
  Attempt &attempt = attempts[peer];
  if (!attempt.channel) {
    if (Clock::now() < attempt.next)
      return;
    attempt.next = Clock::now() + retryTime;
    int socket = startConnecting(places[peer]);
    if (socket < 0) {
      attempt.failure = std::strerror(errno);
      return;
    }
    attempt.channel =
        SecureChannel::asClient(*context, socket, {.client = uint32_t(self), .server = uint32_t(peer)}, keys[peer]);
    attempt.next = Clock::now() + visitTime;
  }
  SecureChannel::State state = attempt.channel->shakeHands();
  if (state == SecureChannel::State::done)
    channels[peer] = std::move(attempt.channel);
  if (state == SecureChannel::State::failed || (state == SecureChannel::State::going && Clock::now() > attempt.next)) {
    attempt.failure = state == SecureChannel::State::failed ? attempt.channel->failure() : "no answer";
    attempt.channel.reset();
    attempt.next = Clock::now() + retryTime;
  }
}

void TlsMeeting::waitForNews() const {
  std::vector<pollfd> set;
  if (!isListenerTired)
    set.push_back({listener, POLLIN, 0});
  auto add = [&](const SecureChannel &channel) {
    set.push_back({channel.descriptor(), short(POLLIN | (channel.wantsWrite() ? POLLOUT : 0)), 0});
  };
  for (const Visitor &visitor : visitors)
    add(*visitor.channel);
  for (const Attempt &attempt : attempts)
    if (attempt.channel)
      add(*attempt.channel);
  poll(set.data(), set.size(), int(turnTime.count()));
}

Status TlsMeeting::connectAll(const Places &everyone, milliseconds time) {
  places = everyone;
  attempts.resize(places.size());
  channels.resize(places.size());
  const Clock::time_point deadline = Clock::now() + time;
  auto missing = [this] {
    size_t peer = 0;
    while (peer < places.size() && !isMissing(peer))
      ++peer;
    return peer;
  };
  while (missing() < places.size()) {
    if (Clock::now() > deadline) {
      size_t peer = missing();
      std::string failure = attempts[peer].failure;
      if (failure.empty() && numRefused > 0)
        failure = fmt::format("{} who came were refused, the last: {}", numRefused, lastRefusal);
      return Status::error(ErrorKind::lost,
                           "rank {}: no connection with rank {} at {} within {:g} s{}; can the two hosts reach each "
                           "other, and is a firewall between them?",
                           self, peer, describeAddress(places[peer]), double(time.count()) / 1000,
                           failure.empty() ? "" : ": " + failure);
    }
    accept();
    hearVisitors();
    for (size_t peer = 0; peer < size_t(self); ++peer)
      if (isMissing(peer))
        attempt(peer);
    if (missing() < places.size())
      waitForNews();
  }
  visitors.clear();
  return Status::ok();
}

} // namespace dg::detail
