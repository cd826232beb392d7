// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/ArrivalStore.h"

#include <algorithm>
#include <cstring>

namespace dg::detail {

ArrivalStore::ArrivalStore(uint32_t numBlocks, uint32_t maxQuestions)
    : bytes(new char[size_t(numBlocks) * blockBytes]), nextBlock(numBlocks), entries(size_t(numBlocks) + maxQuestions) {
  for (uint32_t i = numBlocks; i-- > 0;) {
    nextBlock[i] = freeBlock;
    freeBlock = i;
  }
  for (uint32_t i = uint32_t(entries.size()); i-- > 0;) {
    entries[i].next = freeEntry;
    freeEntry = i;
  }
}

ArrivalStore::Entry *ArrivalStore::add(uint64_t tag, uint64_t size) {
  if (freeEntry == none)
    return nullptr;
  uint32_t index = freeEntry;
  Entry &entry = entries[index];
  freeEntry = entry.next;
  entry = {.tag = tag, .bytes = size};
  (oldest == none ? oldest : entries[newest].next) = index;
  newest = index;
  return &entry;
}

ArrivalStore::Entry *ArrivalStore::find(uint64_t tag) {
  for (uint32_t i = oldest; i != none; i = entries[i].next)
    if (entries[i].tag == tag && entries[i].claimant == none && !entries[i].isDropped)
      return &entries[i];
  return nullptr;
}

void ArrivalStore::remove(Entry *entry) {
  const uint32_t index = uint32_t(entry - entries.data());
  uint32_t before = none;
  for (uint32_t i = oldest; i != index; i = entries[i].next)
    before = i;
  (before == none ? oldest : entries[before].next) = entry->next;
  if (newest == index)
    newest = before;
  if (entry->first != none) {
    nextBlock[entry->last] = freeBlock;
    freeBlock = entry->first;
  }
  entry->next = freeEntry;
  freeEntry = index;
}

std::span<char> ArrivalStore::room(Entry &entry) {
  const size_t used = entry.arrived % blockBytes;
  if (entry.arrived == entry.numBlocks * blockBytes) {
    if (freeBlock == none)
      return {};
    uint32_t block = freeBlock;
    freeBlock = nextBlock[block];
    nextBlock[block] = none;
    (entry.first == none ? entry.first : nextBlock[entry.last]) = block;
    entry.last = block;
    ++entry.numBlocks;
  }
  return {startOf(entry.last) + used, std::min<size_t>(blockBytes - used, entry.bytes - entry.arrived)};
}

void ArrivalStore::copyTo(const Entry &entry, char *to) const {
  uint64_t left = entry.bytes;
  for (uint32_t block = entry.first; left > 0; block = nextBlock[block]) {
    size_t count = std::min<uint64_t>(left, blockBytes);
    std::memcpy(to, startOf(block), count);
    to += count;
    left -= count;
  }
}

} // namespace dg::detail
