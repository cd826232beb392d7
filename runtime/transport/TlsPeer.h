// SPDX-License-Identifier: Apache-2.0
// What TlsTransport keeps of each request and of each rank of another host. Only TlsTransport.cpp includes it, and what
// fuzzes its frames.
#pragma once

#include "runtime/transport/ArrivalStore.h"
#include "runtime/transport/SecureChannel.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace dg::detail::tls {

inline constexpr uint32_t none = UINT32_MAX;
/// A record of TLS; small frames share one.
inline constexpr size_t recordBytes = 16384;
inline constexpr size_t largestMessage = 1 << 20;

/// What travels; TlsTransport.cpp says when.
enum class FrameKind : uint32_t { message, question, answer, part, blocks };

struct Frame {
  FrameKind kind = FrameKind::blocks;
  uint32_t freed = 0;           ///< blocks that can be filled again
  uint64_t tag = 0, bytes = 0;  ///< of a message or question; bytes: also of a part
  uint64_t id = 0, receive = 0; ///< request of the sender; of the receiver
};
/// An answer that takes no bytes: the sizes differ.
inline constexpr uint64_t noReceive = UINT64_MAX;

enum class SlotState : uint8_t { free, open, done, failed };
/// Of a request whose bytes do not go with its first frame.
enum class Question : uint8_t {
  none,
  asked,   ///< send: the receiver was asked; receive: it has answered, and the parts may come
  answered ///< send: the parts may go
};

/// One request of this rank.
struct Slot {
  SlotState state = SlotState::free;
  bool isSend = false;
  Question question = Question::none;
  uint32_t generation = 0; ///< which of its lives: what comes late for an earlier one is recognised
  uint64_t receive = 0;    ///< of a send that was answered
  int64_t peer = 0;
  uint64_t tag = 0;
  char *data = nullptr;
  size_t bytes = 0, moved = 0;
  size_t found = 0; ///< the size that came, where it is another
  uint32_t next = none;
};

/// First in, first out, through Slot::next.
struct Queue {
  uint32_t head = none, tail = none;
};

/// A rank of another host, and how far the messages from and to it have come.
struct Peer {
  Peer(uint64_t rank, std::unique_ptr<SecureChannel> channel, uint32_t ownBlocks, uint32_t theirBlocks,
       uint32_t maxAnswers)
      : rank(rank), channel(std::move(channel)), arrivals(ownBlocks, maxAnswers), numBlocks(ownBlocks),
        theirBlocks(theirBlocks), credit(theirBlocks),
        largest(std::min<size_t>(largestMessage, theirBlocks * ArrivalStore::blockBytes / 4)), answers(maxAnswers),
        staging(recordBytes) {}

  uint64_t rank;
  std::unique_ptr<SecureChannel> channel;
  std::string failure; ///< empty while it can be talked to
  uint64_t moved = 0;  ///< bytes in both directions

  // Receiving.
  ArrivalStore arrivals;
  Queue posted;                           ///< receives that wait for their message
  uint32_t numBlocks, lent = 0, owed = 0; ///< lent: that the sender cannot use yet; owed: of these, free again
  Frame frame;
  size_t frameArrived = 0;
  uint64_t left = 0;                    ///< of the payload of `frame`
  uint32_t into = none;                 ///< the receive that takes it
  ArrivalStore::Entry *entry = nullptr; ///< or the entry; neither: nobody
  bool hasMore = false;                 ///< a turn ended before all that is here was taken

  // Sending.
  uint32_t theirBlocks, credit; ///< blocks that the receiver has for this rank, and those of them that are free
  size_t largest;               ///< that goes without asking
  Queue sending;
  std::vector<Frame> answers; ///< a ring
  size_t firstAnswer = 0, numAnswers = 0;
  std::vector<char> staging;
  size_t stagedBegin = 0, stagedEnd = 0;
  Queue staged;           ///< sends that are over when the staging area has left
  uint32_t sender = none; ///< whose bytes follow it
  size_t senderLeft = 0;
  bool isWatchedForRoom = false;
};

} // namespace dg::detail::tls
