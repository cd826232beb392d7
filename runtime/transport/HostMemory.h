// SPDX-License-Identifier: Apache-2.0
// Memory that the ranks of one host see: every rank has a block, and all ranks of the host map it. Collectives over it
// read and write each other's arenas in place, without messages. A block is an unnamed file: it goes with the last
// process that maps it.
//
//   block   lines: the words of each communication of its rank │ heap: small copies │ data: the rank's arena
//
// Whoever owns a block is the only one to write its lines; others look at them.
#pragma once

#include "runtime/transport/AddressExchange.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dg {

/// The words of one communication of one rank, which only that rank writes. A round is one start; rounds count from 1
/// and go on when another communication takes the same key.
struct alignas(128) HostLine {
  std::atomic<uint64_t> key;    ///< which communication
  std::atomic<uint64_t> posted; ///< the last round that its rank has begun; what it offers can then be read
  std::atomic<uint64_t> passed; ///< the last round in which its rank has read and written all that it had to
  uint64_t input, output; ///< where in the data of the block; of messages: how many sends and receives were started
  std::atomic<uint64_t> bytes[2]; ///< what its rank believes the size to be, of even and of odd rounds
  uint64_t heap;                  ///< where in the block its part of the heap is; written once, before the key
};

class HostMemory {
public:
  /// Bytes of the heap that each line has: two rounds of a small message.
  static constexpr size_t heapBytesOfLine = 2 * (1024 + 64);

  /// Joins the ranks of this host: makes a block with `bytes` of data, tells the others, and maps theirs. A host where
  /// a rank cannot map another's block has none (`reaches` is then false everywhere on it); the reason is not an error.
  /// Uses two exchanges. `key` names the host: ranks with equal keys stand on one.
  static Result<std::unique_ptr<HostMemory>> join(int64_t rank, const std::string &key, size_t bytes,
                                                  const AddressExchange &exchange);
  /// The memories of ranks that are threads of one process; index = rank. They may be destroyed in any order.
  static Result<std::vector<std::unique_ptr<HostMemory>>> ofThreads(int64_t numRanks, size_t bytes);

  /// This rank's data: zeroed, page-aligned, `bytes()` long. Only if it reaches itself.
  std::byte *data() const { return dataOf(self); }
  size_t bytes() const { return size; }
  int64_t rank() const { return self; }
  /// Where this process sees the data of a rank that it reaches.
  std::byte *dataOf(int64_t rank) const { return blocks[size_t(rank)]->start + dataBegin; }
  /// Whether all of these ranks see each other's memory: one answer on all of them.
  bool reaches(const std::vector<int64_t> &ranks) const;
  /// The same about ranks of any host.
  bool areTogether(const std::vector<int64_t> &ranks) const;
  /// Set-up: says which bytes of data() others will look at, as (begin, end). Whole huge pages that hold none of them
  /// become memory of this process alone, which the system can give as huge pages. Only once: a second call is an
  /// error, and means that two users want the same memory.
  Status shareOnly(std::vector<std::pair<uint64_t, uint64_t>> ranges);
  /// Whether this rank reaches any other.
  bool hasNeighbours() const;
  /// Offset of a pointer into data() if `count` bytes from there lie in it, otherwise npos. No bytes lie anywhere.
  size_t offsetOf(const void *pointer, size_t count) const;
  static constexpr size_t npos = SIZE_MAX;

  /// Set-up: this rank's line for a key, made when it has none; null when all are taken.
  HostLine *takeLine(uint64_t key);
  /// The line of a rank that it reaches, or null as long as that rank has not taken it. O(lines of the rank).
  HostLine *findLine(int64_t rank, uint64_t key) const;
  std::byte *heapOf(int64_t rank, const HostLine &line) const { return blocks[size_t(rank)]->start + line.heap; }

private:
  struct Block {
    std::byte *start = nullptr; ///< on the boundary of a huge page
    size_t bytes = 0;
    ~Block();
  };
  static constexpr size_t hugePageBytes = size_t(2) << 20;
  static constexpr size_t maxLines = size_t(1) << 14, linesBegin = 128;
  static constexpr size_t heapBegin = linesBegin + maxLines * sizeof(HostLine);
  /// On the boundary of a huge page. The file has holes where nothing was written.
  static constexpr size_t dataBegin =
      (heapBegin + maxLines * heapBytesOfLine + hugePageBytes - 1) / hugePageBytes * hugePageBytes;

  HostMemory(int64_t rank, size_t bytes) : self(rank), size(bytes) {}
  static Result<std::shared_ptr<Block>> mapBlock(int file, size_t bytes);
  /// How many lines a rank has taken.
  static std::atomic<uint64_t> &numLines(const Block &block);
  static HostLine *lines(const Block &block);

  int64_t self;
  size_t size;
  bool isTaken = false;                       ///< shareOnly was called
  std::vector<std::shared_ptr<Block>> blocks; ///< by rank; null: on another host
  std::vector<int64_t> hostOf; ///< by rank: the lowest rank of its host, or -1 where blocks are not mapped
  std::unordered_map<uint64_t, uint64_t> lineOfKey;
};

} // namespace dg
