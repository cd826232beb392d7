// SPDX-License-Identifier: Apache-2.0
// How the ranks of different hosts get their connections: the one with the higher number comes to the other's door,
// and the door is shut when all are there. Who cannot prove that it holds the key of a pair is closed out.
#pragma once

#include "runtime/support/SocketAddress.h"
#include "runtime/transport/SecureChannel.h"

#include <chrono>
#include <deque>
#include <vector>

namespace dg::detail {

/// One thread.
class TlsMeeting {
public:
  /// Where another rank is; without bytes: not one of another host.
  using Places = std::vector<SocketAddress>;

  /// Opens the door on that address, at a free port. `context` asks for keys through keyOf.
  static Result<std::unique_ptr<TlsMeeting>> open(int64_t rank, const std::string &address, std::vector<PairKey> keys);
  TlsMeeting(const TlsMeeting &) = delete;
  ~TlsMeeting();

  uint16_t port() const { return portOf(place); }
  /// Connects to all; returns when every channel is there, or fails after the time with the first that is missing.
  Status connectAll(const Places &places, std::chrono::milliseconds time);
  /// By rank; null where there is no place.
  std::vector<std::unique_ptr<SecureChannel>> takeChannels() { return std::move(channels); }
  /// For the channels only: no more handshakes.
  std::unique_ptr<SecureContext> takeContext() { return std::move(context); }

private:
  using Clock = std::chrono::steady_clock;
  struct Visitor {
    std::unique_ptr<SecureChannel> channel;
    Clock::time_point deadline;
  };
  /// A way to a rank with a lower number.
  struct Attempt {
    std::unique_ptr<SecureChannel> channel;
    Clock::time_point next = {};
    std::string failure;
  };
  TlsMeeting() = default;
  void accept();
  void hearVisitors();
  void attempt(size_t peer);
  void waitForNews() const;
  bool isMissing(size_t peer) const { return places[peer].bytes > 0 && !channels[peer]; }

  int64_t self = 0;
  int listener = -1;
  SocketAddress place;          ///< of the listener
  bool isListenerTired = false; ///< no descriptor was left for who came
  std::vector<PairKey> keys;
  Places places;
  std::unique_ptr<SecureContext> context;
  uint64_t numRefused = 0;
  std::string lastRefusal;      ///< why
  std::deque<Visitor> visitors; ///< unproved; the oldest first
  std::vector<Attempt> attempts;
  std::vector<std::unique_ptr<SecureChannel>> channels;
};

} // namespace dg::detail
