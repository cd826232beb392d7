// SPDX-License-Identifier: Apache-2.0
// One connection between two ranks of different hosts: TLS 1.3 with a key that only the two have. TLS gives what a
// message needs on a network that nobody trusts: who sent it, every byte as it was sent, in order, once. OpenSSL's
// types stay in SecureChannel.cpp.
#pragma once

#include "runtime/support/Status.h"

#include <array>
#include <functional>
#include <memory>
#include <string>

struct ssl_ctx_st;
struct ssl_st;

namespace dg {

/// Shared by two ranks of one run, and by nobody else.
using PairKey = std::array<uint8_t, 32>;

/// Which two ranks a connection joins: the client says so before it proves it.
struct PairName {
  uint32_t client = 0, server = 0;
};

/// Settings that all connections of a rank share.
class SecureContext {
public:
  /// For the pair, the key, or null where this rank is not its server or the client does not come to it. Called while a
  /// server shakes hands.
  using FindKey = std::function<const PairKey *(PairName)>;
  /// After so many records a new key is used: AES-GCM keeps its margin up to 2^24.5 (RFC 8446, 5.5).
  static constexpr uint64_t recordsPerKey = uint64_t(1) << 24;
  static Result<std::unique_ptr<SecureContext>> make(FindKey findKey, uint64_t keyLife = recordsPerKey);
  ~SecureContext();
  SecureContext(const SecureContext &) = delete;

private:
  friend class SecureChannel;
  friend struct SecureCallbacks;
  SecureContext() = default;
  ssl_ctx_st *context = nullptr;
  uint64_t keyLife = recordsPerKey;
  FindKey findKey;
};

/// One end; never blocks. One thread at a time. The context outlives it.
class SecureChannel {
public:
  enum class State { going, done, failed };

  /// Take the descriptor: a connected (client: or connecting) non-blocking TCP socket.
  static std::unique_ptr<SecureChannel> asClient(SecureContext &context, int descriptor, PairName pair,
                                                 const PairKey &key);
  static std::unique_ptr<SecureChannel> asServer(SecureContext &context, int descriptor);
  ~SecureChannel();
  SecureChannel(const SecureChannel &) = delete;

  int descriptor() const { return socket; }
  /// Whether the handshake, or the last write, waits until the socket can be written to.
  bool wantsWrite() const { return isWriteBlocked; }
  /// Goes as far as it can now. done: both have proved that they hold the key; pair() is true.
  State shakeHands();
  PairName pair() const { return names; }

  /// How many bytes were moved; 0 when nothing can move now, or when the channel has failed. A write that moved nothing
  /// is repeated with the same bytes.
  size_t write(const void *bytes, size_t count);
  size_t read(void *bytes, size_t count);
  /// Whether bytes have come that read() has not given yet and that the socket does not show any more.
  bool hasPending() const;
  /// Why it failed, in the middle of a sentence: "…"; empty while it has not.
  const std::string &failure() const { return why; }
  /// Whether the kernel encrypts what is written (kTLS).
  bool isInKernel() const;
  /// Tells the other side that nothing follows. For the way out.
  void sayGoodbye();

private:
  SecureChannel(SecureContext &context, int descriptor);
  /// What a call that moved nothing means: wait, or the end with the reason in `why`.
  void judge(int code);
  friend struct SecureCallbacks;

  SecureContext &context;
  int socket;
  ssl_st *connection = nullptr;
  PairName names;
  PairKey key = {}; ///< until the handshake is over
  bool isWriteBlocked = false, isDone = false;
  uint64_t numRecords = 0; ///< written with the present key
  std::string why;
};

} // namespace dg
