// SPDX-License-Identifier: Apache-2.0
// Matching of sends and receives between threads: one lock, one queue of open requests per pair of ranks.
#include "tests/unit/transport/InProcessTransport.h"

#include "runtime/transport/HostMemory.h"

#include <cassert>
#include <cstring>
#include <mutex>

namespace dg {
namespace {

constexpr uint32_t none = UINT32_MAX;

enum class SlotState : uint8_t { free, open, done, failed };

struct Slot {
  SlotState state = SlotState::free;
  bool isSend = false;
  int64_t peer = 0;
  uint64_t tag = 0;
  union {
    const void *from;
    void *to;
  };
  size_t bytes = 0, peerBytes = 0;
  uint32_t next = none; ///< in the owner's queue of open requests, oldest first; or in its free list
};

struct RankState {
  std::vector<Slot> slots;
  uint32_t freeHead = none, openHead = none, openTail = none;
  size_t numTaken = 0;
  bool isAlive = true;
};

/// Shared by all ranks; every field is guarded by the lock.
struct Hub {
  std::mutex lock;
  std::vector<RankState> ranks;
};

class InProcessTransport final : public Transport {
public:
  InProcessTransport(std::shared_ptr<Hub> hub, int64_t rank, std::unique_ptr<HostMemory> memory)
      : hub(std::move(hub)), self(rank), memory(std::move(memory)) {}
  ~InProcessTransport() override {
    cancelAll();
    std::lock_guard guard(hub->lock);
    mine().isAlive = false;
  }

  int64_t rank() const override { return self; }
  int64_t numRanks() const override { return int64_t(hub->ranks.size()); }

  Request startSend(int64_t peer, uint64_t tag, const void *data, size_t bytes) override {
    Slot slot = {.isSend = true, .peer = peer, .tag = tag, .from = data, .bytes = bytes};
    return start(slot);
  }
  Request startReceive(int64_t peer, uint64_t tag, void *data, size_t bytes) override {
    Slot slot = {.isSend = false, .peer = peer, .tag = tag, .to = data, .bytes = bytes};
    return start(slot);
  }

  void advance() override {} // a message arrives when its second half is started

  Progress look(Request request) override {
    if (request == none)
      return Progress::failed; // lastFailure was written when it was refused
    std::lock_guard guard(hub->lock);
    Slot &slot = mine().slots[request];
    assert(slot.state != SlotState::free && "a request is looked at again after its end");
    if (slot.state == SlotState::open) {
      if (hub->ranks[size_t(slot.peer)].isAlive)
        return Progress::pending;
      removeOpen(mine(), request);
      lastFailure = Status::error(ErrorKind::runFailed, "rank {}: {} rank {} (tag {:#x}, {} bytes): the peer has left",
                                  self, verb(slot), slot.peer, slot.tag, slot.bytes);
      release(request);
      return Progress::failed;
    }
    bool isDone = slot.state == SlotState::done;
    if (!isDone)
      lastFailure = Status::error(ErrorKind::runFailed,
                                  "rank {}: {} rank {} (tag {:#x}): found a message of {} bytes, expected {}", self,
                                  verb(slot), slot.peer, slot.tag, slot.peerBytes, slot.bytes);
    release(request);
    return isDone ? Progress::done : Progress::failed;
  }

  bool hasRoom() const override {
    std::lock_guard guard(hub->lock);
    const RankState &state = hub->ranks[size_t(self)];
    return state.numTaken * 2 <= state.slots.size();
  }
  Status failure() const override { return lastFailure; }
  uint64_t activity(int64_t) const override { return 0; } // a message moves at once
  HostMemory *hostMemory() override { return memory.get(); }

  void cancelAll() override {
    std::lock_guard guard(hub->lock);
    RankState &state = mine();
    state.openHead = state.openTail = none;
    for (uint32_t i = 0; i < state.slots.size(); ++i)
      if (state.slots[i].state != SlotState::free)
        release(i);
  }

private:
  RankState &mine() { return hub->ranks[size_t(self)]; }
  static const char *verb(const Slot &slot) { return slot.isSend ? "send to" : "receive from"; }

  Request start(const Slot &wanted) {
    if (wanted.peer < 0 || wanted.peer >= numRanks() || wanted.tag > maxTag) {
      lastFailure = Status::error(ErrorKind::runFailed,
                                  "rank {}: {} rank {}, tag {:#x}: expected a rank below {} and a tag up to {:#x}",
                                  self, verb(wanted), wanted.peer, wanted.tag, numRanks(), maxTag);
      return none;
    }
    std::lock_guard guard(hub->lock);
    RankState &state = mine();
    uint32_t index = state.freeHead;
    if (index == none) {
      lastFailure =
          Status::error(ErrorKind::runFailed,
                        "rank {}: {} rank {} (tag {:#x}): all {} requests are open; make the transport with more", self,
                        verb(wanted), wanted.peer, wanted.tag, state.slots.size());
      return none;
    }
    state.freeHead = state.slots[index].next;
    ++state.numTaken;
    Slot &slot = state.slots[index];
    slot = wanted;
    slot.state = SlotState::open;

    RankState &peer = hub->ranks[size_t(wanted.peer)];
    for (uint32_t i = peer.openHead; i != none; i = peer.slots[i].next) {
      Slot &other = peer.slots[i];
      if (other.isSend == slot.isSend || other.peer != self || other.tag != slot.tag)
        continue;
      removeOpen(peer, i);
      complete(slot.isSend ? slot : other, slot.isSend ? other : slot);
      return index;
    }
    appendOpen(state, index);
    return index;
  }

  /// Copies under the lock: neither side can give up its buffer meanwhile. A send is done whatever the receiver
  /// expected, as over a network.
  static void complete(Slot &send, Slot &receive) {
    send.state = SlotState::done;
    receive.peerBytes = send.bytes;
    receive.state = send.bytes == receive.bytes ? SlotState::done : SlotState::failed;
    if (receive.state == SlotState::done && send.bytes != 0)
      std::memcpy(receive.to, send.from, send.bytes);
  }

  static void appendOpen(RankState &state, uint32_t index) {
    state.slots[index].next = none;
    (state.openTail == none ? state.openHead : state.slots[state.openTail].next) = index;
    state.openTail = index;
  }

  static void removeOpen(RankState &state, uint32_t index) {
    uint32_t previous = none;
    for (uint32_t i = state.openHead; i != index; i = state.slots[i].next)
      previous = i;
    (previous == none ? state.openHead : state.slots[previous].next) = state.slots[index].next;
    if (state.openTail == index)
      state.openTail = previous;
  }

  void release(uint32_t index) {
    RankState &state = mine();
    --state.numTaken;
    state.slots[index].state = SlotState::free;
    state.slots[index].next = state.freeHead;
    state.freeHead = index;
  }

  std::shared_ptr<Hub> hub;
  int64_t self;
  std::unique_ptr<HostMemory> memory;
  Status lastFailure = Status::ok();
};

} // namespace

std::vector<std::unique_ptr<Transport>> makeInProcessTransports(int64_t numRanks, uint32_t maxRequests,
                                                                size_t sharedBytes) {
  auto hub = std::make_shared<Hub>();
  hub->ranks.resize(size_t(numRanks));
  for (RankState &state : hub->ranks) {
    state.slots.resize(maxRequests);
    for (uint32_t i = maxRequests; i-- > 0;) {
      state.slots[i].next = state.freeHead;
      state.freeHead = i;
    }
  }
  std::vector<std::unique_ptr<HostMemory>> memories(static_cast<size_t>(numRanks));
  if (sharedBytes > 0)
    if (auto made = HostMemory::ofThreads(numRanks, sharedBytes))
      memories = std::move(*made);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int64_t rank = 0; rank < numRanks; ++rank)
    transports.push_back(std::make_unique<InProcessTransport>(hub, rank, std::move(memories[size_t(rank)])));
  return transports;
}

} // namespace dg
