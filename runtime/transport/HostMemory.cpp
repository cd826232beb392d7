// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/HostMemory.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace dg {

namespace {

/// A file descriptor that is closed with its owner.
struct Descriptor {
  int number = -1;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const Descriptor &) = delete;
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
};

Status systemError(const char *what, size_t bytes) {
  return Status::error(ErrorKind::runFailed,
                       "cannot {} {} bytes that the ranks of this host share: {}; use more ranks or a smaller --memory",
                       what, bytes, std::strerror(errno));
}

/// What a rank tells the others: where its block is and which host it stands on.
std::string pack(pid_t process, int file, size_t bytes, const std::string &key) {
  return fmt::format("{} {} {} {}", process, file, bytes, key);
}

struct Announcement {
  int64_t process = 0, file = 0;
  uint64_t bytes = 0;
  std::string key;
};

/// False for bytes that pack() did not write.
bool unpack(const std::string &text, Announcement &announcement) {
  const char *at = text.data(), *end = at + text.size();
  auto number = [&](auto &value) {
    auto [next, error] = std::from_chars(at, end, value);
    bool isGood = error == std::errc() && next != end && *next == ' ';
    at = isGood ? next + 1 : end;
    return isGood;
  };
  if (!number(announcement.process) || !number(announcement.file) || !number(announcement.bytes))
    return false;
  announcement.key.assign(at, end);
  return true;
}

} // namespace

HostMemory::Block::~Block() {
  if (start)
    munmap(start, bytes);
}

std::atomic<uint64_t> &HostMemory::numLines(const Block &block) {
  return *reinterpret_cast<std::atomic<uint64_t> *>(block.start);
}

HostLine *HostMemory::lines(const Block &block) { return reinterpret_cast<HostLine *>(block.start + linesBegin); }

Result<std::shared_ptr<HostMemory::Block>> HostMemory::mapBlock(int file, size_t bytes) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "lines are shared between processes");
  // More than is needed, so that a part of it begins on the boundary of a huge page.
  size_t reservedBytes = bytes + hugePageBytes;
  void *reserved = mmap(nullptr, reservedBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    return systemError("map", bytes);
  auto first = reinterpret_cast<uintptr_t>(reserved);
  auto begin = (first + hugePageBytes - 1) / hugePageBytes * hugePageBytes;
  auto block = std::make_shared<Block>();
  block->start = reinterpret_cast<std::byte *>(begin);
  block->bytes = bytes;
  if (begin > first)
    munmap(reserved, begin - first);
  size_t pageBytes = size_t(sysconf(_SC_PAGESIZE)), usedBytes = (bytes + pageBytes - 1) / pageBytes * pageBytes;
  munmap(block->start + usedBytes, first + reservedBytes - begin - usedBytes);
  int flags = MAP_SHARED | MAP_NORESERVE | MAP_FIXED | (file < 0 ? MAP_ANONYMOUS : 0);
  if (mmap(block->start, bytes, PROT_READ | PROT_WRITE, flags, file, 0) == MAP_FAILED)
    return systemError("map", bytes);
  return block;
}

Status HostMemory::shareOnly(std::vector<std::pair<uint64_t, uint64_t>> ranges) {
  if (isTaken)
    return Status::error(ErrorKind::usage, "rank {}: its shared memory is in use already", self);
  isTaken = true;
  std::sort(ranges.begin(), ranges.end());
  ranges.push_back({size, size});
  uint64_t free = 0;
  for (auto [begin, end] : ranges) {
    uint64_t from = (free + hugePageBytes - 1) / hugePageBytes * hugePageBytes;
    uint64_t to = begin / hugePageBytes * hugePageBytes;
    free = std::max(free, end);
    if (to <= from)
      continue;
    void *pages = data() + from;
    if (mmap(pages, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      return systemError("map", to - from);
    (void)madvise(pages, to - from, MADV_HUGEPAGE); // advice only: without, the run is slower, not wrong
  }
  return Status::ok();
}

Result<std::unique_ptr<HostMemory>> HostMemory::join(int64_t rank, const std::string &key, size_t bytes,
                                                     const AddressExchange &exchange) {
  std::unique_ptr<HostMemory> memory(new HostMemory(rank, bytes));
  size_t blockBytes = dataBegin + std::max<size_t>(bytes, 1);
  Descriptor file(memfd_create("dg", MFD_CLOEXEC));
  std::shared_ptr<Block> own;
  if (file.number >= 0 && ftruncate(file.number, off_t(blockBytes)) == 0)
    if (auto mapped = mapBlock(file.number, blockBytes); mapped)
      own = *mapped;

  auto told = exchange(pack(getpid(), file.number, blockBytes, key));
  if (!told)
    return told.status();
  size_t numRanks = told->size();
  if (rank < 0 || size_t(rank) >= numRanks)
    return Status::error(ErrorKind::runFailed, "rank {}: the exchange gave the memory of {} ranks", rank, numRanks);
  memory->blocks.resize(numRanks);
  memory->blocks[size_t(rank)] = own;
  std::map<std::string, int64_t> firstOf;
  bool areAllMapped = own != nullptr;
  for (size_t peer = 0; peer < numRanks; ++peer) {
    Announcement theirs;
    if (!unpack((*told)[peer], theirs))
      return Status::error(ErrorKind::runFailed, "rank {}: what rank {} says of its memory is damaged", rank, peer);
    memory->hostOf.push_back(firstOf.try_emplace(theirs.key, int64_t(peer)).first->second);
    if (theirs.key != key || peer == size_t(rank))
      continue;
    Descriptor opened(open(fmt::format("/proc/{}/fd/{}", theirs.process, theirs.file).c_str(), O_RDWR | O_CLOEXEC));
    if (opened.number >= 0 && theirs.bytes > dataBegin)
      if (auto mapped = mapBlock(opened.number, theirs.bytes); mapped)
        memory->blocks[peer] = *mapped;
    areAllMapped = areAllMapped && memory->blocks[peer];
  }

  // Also keeps the files open until everyone has opened them.
  auto mapped = exchange(areAllMapped ? "all" : "");
  if (!mapped)
    return mapped.status();
  std::vector<int64_t> host = memory->hostOf;
  for (size_t peer = 0; peer < numRanks && peer < mapped->size(); ++peer)
    if ((*mapped)[peer] != "all")
      for (size_t other = 0; other < numRanks; ++other)
        if (host[other] == host[peer])
          memory->hostOf[other] = -1;
  return memory;
}

Result<std::vector<std::unique_ptr<HostMemory>>> HostMemory::ofThreads(int64_t numRanks, size_t bytes) {
  std::vector<std::shared_ptr<Block>> blocks;
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    auto block = mapBlock(-1, dataBegin + std::max<size_t>(bytes, 1));
    if (!block)
      return block.status();
    blocks.push_back(*block);
  }
  std::vector<std::unique_ptr<HostMemory>> memories;
  for (int64_t rank = 0; rank < numRanks; ++rank) {
    memories.emplace_back(new HostMemory(rank, bytes));
    memories.back()->blocks = blocks;
    memories.back()->hostOf.assign(size_t(numRanks), 0);
  }
  return memories;
}

bool HostMemory::reaches(const std::vector<int64_t> &ranks) const {
  std::vector<int64_t> all = ranks;
  all.push_back(self);
  return areTogether(all);
}

bool HostMemory::areTogether(const std::vector<int64_t> &ranks) const {
  auto hostOfRank = [&](int64_t rank) { return rank >= 0 && size_t(rank) < hostOf.size() ? hostOf[size_t(rank)] : -1; };
  int64_t host = ranks.empty() ? -1 : hostOfRank(ranks[0]);
  return host >= 0 && std::all_of(ranks.begin(), ranks.end(), [&](int64_t rank) { return hostOfRank(rank) == host; });
}

bool HostMemory::hasNeighbours() const {
  int64_t host = hostOf[size_t(self)];
  return host >= 0 && std::count(hostOf.begin(), hostOf.end(), host) > 1;
}

size_t HostMemory::offsetOf(const void *pointer, size_t count) const {
  if (count == 0)
    return 0;
  uintptr_t at = reinterpret_cast<uintptr_t>(pointer), begin = reinterpret_cast<uintptr_t>(data());
  return at >= begin && at - begin <= size && count <= size - (at - begin) ? at - begin : npos;
}

HostLine *HostMemory::takeLine(uint64_t key) {
  const Block &block = *blocks[size_t(self)];
  std::atomic<uint64_t> &count = numLines(block);
  uint64_t next = count.load(std::memory_order_relaxed);
  auto [known, isNew] = lineOfKey.try_emplace(key, next);
  HostLine *line = lines(block) + known->second;
  if (!isNew)
    return line;
  if (next == maxLines) {
    lineOfKey.erase(known);
    return nullptr;
  }
  line->heap = heapBegin + next * heapBytesOfLine;
  line->key.store(key, std::memory_order_relaxed);
  count.store(next + 1, std::memory_order_release);
  return line;
}

HostLine *HostMemory::findLine(int64_t rank, uint64_t key) const {
  const Block &block = *blocks[size_t(rank)];
  uint64_t count = std::min<uint64_t>(numLines(block).load(std::memory_order_acquire), maxLines);
  for (uint64_t i = 0; i < count; ++i)
    if (HostLine *line = lines(block) + i; line->key.load(std::memory_order_relaxed) == key)
      return line;
  return nullptr;
}

} // namespace dg
