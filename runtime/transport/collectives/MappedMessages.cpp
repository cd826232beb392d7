// SPDX-License-Identifier: Apache-2.0
// Send and receive over mapped arenas: the sender tells where the bytes are, the receiver copies them. Several messages
// of one sender, receiver and tag may be under way; they are read in the order of their start.
#include "runtime/transport/collectives/MappedCommunication.h"

#include <cassert>
#include <cstring>

namespace dg::detail {
namespace {

/// Where a message is. A sender's line has a ring of them in its heap: message i stands in entry i % ringSize.
struct Entry {
  uint64_t offset, bytes;
};
constexpr uint64_t ringSize = 64;
static_assert(ringSize * sizeof(Entry) <= HostMemory::heapBytesOfLine);

/// Between one pair of ranks a tag has one line on each side: the sender's `posted` counts messages that can be read,
/// the receiver's `passed` those that were. The line may serve both directions.
uint64_t keyOf(uint64_t tag, int64_t peer) { return uint64_t(peer) << 48 | tag | 0x8000; }

class MappedMessage : public Communication {
public:
  MappedMessage(HostMemory &memory, int64_t peer, uint64_t tag, size_t bytes)
      : memory(memory), peer(peer), tag(tag), bytes(bytes), own(memory.takeLine(keyOf(tag, peer))) {
    if (!own)
      fail(noLineLeft(memory));
  }

  int64_t waitsFor() const override { return peer; }
  Status failure() const override { return failed; }

protected:
  void fail(Status status) {
    failed = std::move(status);
    state = Progress::failed;
  }
  bool hasFoundPeer() {
    if (!theirs)
      theirs = memory.findLine(peer, keyOf(tag, memory.rank()));
    return theirs;
  }

  HostMemory &memory;
  const int64_t peer;
  const uint64_t tag;
  const size_t bytes;
  HostLine *const own;
  HostLine *theirs = nullptr;
  uint64_t number = 0; ///< of the message that was started last, from 0
  Progress state = Progress::done;
  Status failed = Status::ok();
};

class MappedSend final : public MappedMessage {
public:
  using MappedMessage::MappedMessage;

  void start(void *input, void *) override {
    assert(state != Progress::pending && "a send is started again before it is done");
    if (state == Progress::failed)
      return;
    offset = memory.offsetOf(input, bytes);
    if (offset == HostMemory::npos)
      return fail(notShared(memory, tag, bytes));
    number = own->input++;
    isPosted = false;
    state = Progress::pending;
    post();
  }

  Progress goOn() override {
    if (state != Progress::pending || !hasFoundPeer())
      return state;
    if (!isPosted)
      post();
    if (isPosted && theirs->passed.load(std::memory_order_acquire) > number)
      state = Progress::done;
    return state;
  }

private:
  /// In the order of the starts, and not before the ring has room.
  void post() {
    uint64_t passed = hasFoundPeer() ? theirs->passed.load(std::memory_order_acquire) : 0;
    if (own->posted.load(std::memory_order_relaxed) != number || number - passed >= ringSize)
      return;
    reinterpret_cast<Entry *>(memory.heapOf(memory.rank(), *own))[number % ringSize] = {offset, bytes};
    own->posted.store(number + 1, std::memory_order_release);
    isPosted = true;
  }

  size_t offset = 0;
  bool isPosted = false;
};

class MappedReceive final : public MappedMessage {
public:
  using MappedMessage::MappedMessage;

  void start(void *, void *output) override {
    assert(state != Progress::pending && "a receive is started again before it is done");
    if (state == Progress::failed)
      return;
    to = output;
    number = own->output++;
    state = Progress::pending;
  }

  Progress goOn() override {
    if (state != Progress::pending || !hasFoundPeer())
      return state;
    if (own->passed.load(std::memory_order_relaxed) != number ||
        theirs->posted.load(std::memory_order_acquire) <= number)
      return state;
    const Entry entry = reinterpret_cast<const Entry *>(memory.heapOf(peer, *theirs))[number % ringSize];
    if (entry.bytes == bytes && bytes > 0)
      std::memcpy(to, memory.dataOf(peer) + entry.offset, bytes);
    own->passed.store(number + 1, std::memory_order_release);
    if (entry.bytes != bytes) {
      fail(otherSize(memory, peer, tag, entry.bytes, bytes));
      return state;
    }
    return state = Progress::done;
  }

private:
  void *to = nullptr;
};

} // namespace

std::unique_ptr<Communication> makeMappedSend(HostMemory &memory, int64_t peer, uint64_t tag, size_t bytes) {
  return std::make_unique<MappedSend>(memory, peer, tag, bytes);
}

std::unique_ptr<Communication> makeMappedReceive(HostMemory &memory, int64_t peer, uint64_t tag, size_t bytes) {
  return std::make_unique<MappedReceive>(memory, peer, tag, bytes);
}

} // namespace dg::detail
