// SPDX-License-Identifier: Apache-2.0
// Messages of one peer that came before their receive was started, in blocks that are all made at set-up. The sender
// knows how many blocks there are and never sends more than fits (TlsTransport.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace dg::detail {

/// One thread.
class ArrivalStore {
public:
  static constexpr uint32_t none = UINT32_MAX;
  static constexpr size_t blockBytes = 4096;
  /// Also of a message without bytes.
  static uint32_t blocksFor(size_t bytes) { return uint32_t(bytes == 0 ? 1 : (bytes + blockBytes - 1) / blockBytes); }

  struct Entry {
    uint64_t tag = 0, bytes = 0;
    uint64_t askId = 0; ///< of a question: who asks, at the sender
    bool isQuestion = false;
    uint64_t arrived = 0;     ///< how many of the bytes are here
    uint32_t claimant = none; ///< the receive that waits for the rest
    bool isDropped = false;   ///< nobody wants it any more
    uint32_t first = none, last = none, numBlocks = 0;
    uint32_t next = none;
  };

  /// `maxQuestions`: entries besides those that have blocks.
  ArrivalStore(uint32_t numBlocks, uint32_t maxQuestions);

  /// Null when the peer has sent more than it may.
  Entry *add(uint64_t tag, uint64_t bytes);
  /// The oldest with this tag that nobody has claimed; null when there is none.
  Entry *find(uint64_t tag);
  void remove(Entry *entry);
  /// Where the next bytes of a message go: the rest of a block, at most what is missing. Empty when the blocks are used
  /// up.
  std::span<char> room(Entry &entry);
  void copyTo(const Entry &entry, char *to) const;

private:
  char *startOf(uint32_t block) const { return &bytes[size_t(block) * blockBytes]; }
  std::unique_ptr<char[]> bytes; ///< untouched until used
  std::vector<uint32_t> nextBlock;
  std::vector<Entry> entries;
  uint32_t freeBlock = none, freeEntry = none;
  uint32_t oldest = none, newest = none;
};

} // namespace dg::detail
