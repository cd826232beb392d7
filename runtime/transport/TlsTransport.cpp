// SPDX-License-Identifier: Apache-2.0
// Messages over one secure channel for each rank of another host. What travels is a row of frames:
//
//   message   tag, size, bytes        while the receiver has blocks to keep it in (ArrivalStore): at most 1 MiB
//   question  tag, size, id           a larger one, or one that finds no block: the sender keeps the bytes
//   answer    id, id of the receive   when the receive is there
//   part      id of the receive       up to 256 KiB of the bytes; others may come between two parts
//
// Every frame gives back the blocks that have become free. Messages and questions are matched in the order in which
// they come, which is the order in which they were sent. Frames come from a rank that has proved itself, but what they
// say is checked all the same: a rank with a defect must not write where it pleases.
#include "runtime/transport/TlsTransport.h"

#include "runtime/transport/TlsMeeting.h"
#include "runtime/transport/TlsPeer.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <unistd.h>

namespace dg {
namespace {

using detail::ArrivalStore;
using detail::tls::Frame, detail::tls::FrameKind, detail::tls::Peer, detail::tls::Question, detail::tls::Queue;
using detail::tls::Slot, detail::tls::SlotState, detail::tls::largestMessage, detail::tls::none, detail::tls::noReceive;

constexpr size_t partBytes = 256 << 10;
/// What a turn takes from one peer before the others have theirs.
constexpr size_t bytesPerTurn = 1 << 20;
/// Room for what comes early: of all peers, and of each.
constexpr size_t arrivalBytes = 64 << 20, leastOfPeer = 512 << 10, mostOfPeer = 4 << 20;
/// So many answers are kept ready for it.
constexpr uint32_t mostRequestsOfPeer = 1 << 20;
constexpr int eventsPerTurn = 32;

class TlsTransport final : public Transport {
public:
  TlsTransport(std::unique_ptr<Transport> local, uint32_t maxRequests)
      : local(std::move(local)), peers(size_t(this->local->numRanks())), slots(maxRequests) {
    for (uint32_t i = maxRequests; i-- > 0;) {
      slots[i].next = freeHead;
      freeHead = i;
    }
  }
  ~TlsTransport() override {
    for (auto &peer : peers)
      if (peer)
        peer->channel->sayGoodbye();
    if (events >= 0)
      close(events);
  }

  Status connect(const AddressExchange &exchange, TlsOptions options);

  int64_t rank() const override { return local->rank(); }
  int64_t numRanks() const override { return local->numRanks(); }
  Request startSend(int64_t peer, uint64_t tag, const void *data, size_t bytes) override;
  Request startReceive(int64_t peer, uint64_t tag, void *data, size_t bytes) override;
  void advance() override;
  Progress look(Request request) override;
  bool hasRoom() const override { return numTaken * 2 <= slots.size() && local->hasRoom(); }
  Status failure() const override { return lastFailure; }
  void cancelAll() override;
  uint64_t activity(int64_t peer) const override {
    return peers[size_t(peer)] ? peers[size_t(peer)]->moved : local->activity(peer);
  }
  HostMemory *hostMemory() override { return local->hostMemory(); }

private:
  bool isRemote(int64_t peer) const { return peer >= 0 && peer < numRanks() && peers[size_t(peer)]; }
  Request ofLocal(Request request);
  uint32_t take(const Slot &wanted);
  void release(uint32_t index);
  void append(Queue &queue, uint32_t index);
  void remove(Queue &queue, uint32_t index);
  uint32_t findPosted(const Peer &peer, uint64_t tag) const;
  uint64_t idOf(uint32_t index) const { return uint64_t(slots[index].generation) << 32 | index; }
  /// The open request that an id of the peer means, or null if that is over.
  Slot *openSlot(uint64_t id, bool isSend, const Peer &peer);

  void receive(Peer &peer);
  bool beginPayload(Peer &peer);
  bool keepForLater(Peer &peer);
  void endPayload(Peer &peer);
  std::span<char> roomForPayload(Peer &peer);
  void takePayload(Peer &peer, size_t count);
  void giveBack(Peer &peer, uint64_t bytes);
  void answer(Peer &peer, uint32_t receive, uint64_t id, uint64_t bytes);
  void finishFromEntry(Peer &peer, uint32_t receive, ArrivalStore::Entry *entry);

  void send(Peer &peer);
  bool stage(Peer &peer);
  void stageFrame(Peer &peer, Frame frame);
  bool stageSend(Peer &peer, uint32_t index);
  bool writeStaged(Peer &peer);
  bool writePayload(Peer &peer);
  void watch(Peer &peer);
  void fail(Peer &peer, std::string why);

  std::unique_ptr<Transport> local;
  std::unique_ptr<SecureContext> context;   ///< outlives the channels
  std::vector<std::unique_ptr<Peer>> peers; ///< by rank; null: of this host
  std::vector<Slot> slots;
  uint32_t freeHead = none;
  size_t numTaken = 0;
  size_t numRestless = 0; ///< peers with hasMore
  int events = -1;
  char discarded[4096];
  Status lastFailure = Status::ok();
};

const char *verb(const Slot &slot) { return slot.isSend ? "send to" : "receive from"; }

Transport::Request TlsTransport::ofLocal(Request request) {
  if (request != refused)
    return request + Request(slots.size());
  lastFailure = local->failure();
  return refused;
}

uint32_t TlsTransport::take(const Slot &wanted) {
  if (wanted.tag > maxTag || freeHead == none) {
    lastFailure =
        wanted.tag > maxTag
            ? Status::error(ErrorKind::runFailed, "rank {}: {} rank {}, tag {:#x}: expected a tag up to {:#x}", rank(),
                            verb(wanted), wanted.peer, wanted.tag, maxTag)
            : Status::error(ErrorKind::runFailed,
                            "rank {}: {} rank {} (tag {:#x}): all {} requests are open; make the transport with more",
                            rank(), verb(wanted), wanted.peer, wanted.tag, slots.size());
    return none;
  }
  uint32_t index = freeHead, generation = slots[index].generation;
  freeHead = slots[index].next;
  slots[index] = wanted;
  slots[index].generation = generation;
  slots[index].state = SlotState::open;
  ++numTaken;
  return index;
}

void TlsTransport::release(uint32_t index) {
  --numTaken;
  slots[index].state = SlotState::free;
  ++slots[index].generation;
  slots[index].next = freeHead;
  freeHead = index;
}

void TlsTransport::append(Queue &queue, uint32_t index) {
  slots[index].next = none;
  (queue.head == none ? queue.head : slots[queue.tail].next) = index;
  queue.tail = index;
}

void TlsTransport::remove(Queue &queue, uint32_t index) {
  uint32_t before = none;
  for (uint32_t i = queue.head; i != index; i = slots[i].next)
    before = i;
  (before == none ? queue.head : slots[before].next) = slots[index].next;
  if (queue.tail == index)
    queue.tail = before;
}

uint32_t TlsTransport::findPosted(const Peer &peer, uint64_t tag) const {
  uint32_t i = peer.posted.head;
  while (i != none && slots[i].tag != tag)
    i = slots[i].next;
  return i;
}

Slot *TlsTransport::openSlot(uint64_t id, bool isSend, const Peer &peer) {
  uint32_t index = uint32_t(id);
  if (index >= slots.size() || idOf(index) != id)
    return nullptr;
  Slot &slot = slots[index];
  bool isIt = slot.state == SlotState::open && slot.isSend == isSend && slot.question == Question::asked &&
              peers[size_t(slot.peer)].get() == &peer;
  return isIt ? &slot : nullptr;
}

Transport::Request TlsTransport::startSend(int64_t to, uint64_t tag, const void *data, size_t bytes) {
  if (!isRemote(to))
    return ofLocal(local->startSend(to, tag, data, bytes));
  char *from = static_cast<char *>(const_cast<void *>(data)); // a send only reads
  uint32_t index = take({.isSend = true, .peer = to, .tag = tag, .data = from, .bytes = bytes});
  if (index == none)
    return refused;
  Peer &peer = *peers[size_t(to)];
  if (!peer.failure.empty()) {
    slots[index].state = SlotState::failed;
    return index;
  }
  append(peer.sending, index);
  send(peer);
  return index;
}

Transport::Request TlsTransport::startReceive(int64_t from, uint64_t tag, void *data, size_t bytes) {
  if (!isRemote(from))
    return ofLocal(local->startReceive(from, tag, data, bytes));
  uint32_t index = take({.peer = from, .tag = tag, .data = static_cast<char *>(data), .bytes = bytes});
  if (index == none)
    return refused;
  Peer &peer = *peers[size_t(from)];
  ArrivalStore::Entry *entry = peer.arrivals.find(tag);
  if (entry && entry->isQuestion) {
    uint64_t id = entry->askId, size = entry->bytes;
    peer.arrivals.remove(entry);
    answer(peer, index, id, size);
    send(peer);
  } else if (entry && entry == peer.entry) {
    entry->claimant = index; // its last bytes are still to come
  } else if (entry) {
    finishFromEntry(peer, index, entry);
    send(peer);
  } else if (peer.failure.empty()) {
    append(peer.posted, index);
  } else {
    slots[index].state = SlotState::failed;
  }
  return index;
}

Progress TlsTransport::look(Request request) {
  if (request == refused)
    return Progress::failed; // lastFailure was written when it was refused
  if (request >= slots.size()) {
    Progress progress = local->look(request - Request(slots.size()));
    if (progress == Progress::failed)
      lastFailure = local->failure();
    return progress;
  }
  Slot &slot = slots[request];
  assert(slot.state != SlotState::free && "a request is looked at again after its end");
  if (slot.state == SlotState::open)
    return Progress::pending;
  bool isDone = slot.state == SlotState::done;
  if (!isDone && slot.found != slot.bytes && !slot.isSend && peers[size_t(slot.peer)]->failure.empty())
    lastFailure =
        Status::error(ErrorKind::runFailed, "rank {}: {} rank {} (tag {:#x}): found a message of {} bytes, expected {}",
                      rank(), verb(slot), slot.peer, slot.tag, slot.found, slot.bytes);
  else if (!isDone)
    lastFailure = Status::error(ErrorKind::runFailed, "rank {}: {} rank {} (tag {:#x}, {} bytes): {}", rank(),
                                verb(slot), slot.peer, slot.tag, slot.bytes, peers[size_t(slot.peer)]->failure);
  release(request);
  return isDone ? Progress::done : Progress::failed;
}

void TlsTransport::advance() {
  local->advance();
  epoll_event ready[eventsPerTurn];
  int count = epoll_wait(events, ready, eventsPerTurn, 0);
  for (int i = 0; i < count; ++i) {
    Peer &peer = *peers[ready[i].data.u64];
    if (ready[i].events & ~uint32_t(EPOLLOUT))
      receive(peer);
    send(peer);
  }
  if (numRestless == 0)
    return;
  for (auto &peer : peers)
    if (peer && peer->hasMore) {
      receive(*peer);
      send(*peer);
    }
}

/// A request of a peer that was given up must not be written to, and what was begun cannot be ended.
void TlsTransport::cancelAll() {
  for (auto &each : peers) {
    if (!each)
      continue;
    Peer &peer = *each;
    peer.into = none; // the rest of the payload goes nowhere
    if (peer.entry && peer.entry->claimant != none)
      peer.entry->isDropped = true;
    if (peer.sender != none)
      fail(peer, "this rank gave up in the middle of a message");
    peer.posted = peer.sending = peer.staged = {};
  }
  for (uint32_t i = 0; i < slots.size(); ++i)
    if (slots[i].state != SlotState::free)
      release(i);
  local->cancelAll();
}

/// Ends everything with this peer. Messages that have come whole can still be received.
void TlsTransport::fail(Peer &peer, std::string why) {
  if (!peer.failure.empty())
    return;
  peer.failure = std::move(why);
  epoll_ctl(events, EPOLL_CTL_DEL, peer.channel->descriptor(), nullptr);
  peer.channel->sayGoodbye();
  numRestless -= peer.hasMore;
  peer.hasMore = false;
  for (Slot &slot : slots)
    if (slot.state == SlotState::open && peers[size_t(slot.peer)].get() == &peer)
      slot.state = SlotState::failed;
  peer.posted = peer.sending = peer.staged = {};
  peer.sender = peer.into = none;
  peer.stagedBegin = peer.stagedEnd = peer.numAnswers = 0;
  if (peer.entry)
    peer.arrivals.remove(std::exchange(peer.entry, nullptr));
}

// Receiving.

void TlsTransport::receive(Peer &peer) {
  size_t taken = 0;
  while (peer.failure.empty() && taken < bytesPerTurn) {
    size_t got;
    if (peer.frameArrived < sizeof peer.frame) {
      got = peer.channel->read(reinterpret_cast<char *>(&peer.frame) + peer.frameArrived,
                               sizeof peer.frame - peer.frameArrived);
      peer.frameArrived += got;
      if (peer.frameArrived == sizeof peer.frame && !beginPayload(peer))
        return fail(peer, "it sent something that is no message of this job");
    } else {
      std::span<char> room = roomForPayload(peer);
      if (room.empty())
        return fail(peer, "it sent more than this rank can keep");
      got = peer.channel->read(room.data(), room.size());
      takePayload(peer, got);
    }
    taken += got;
    peer.moved += got;
    if (got == 0)
      break;
  }
  if (!peer.channel->failure().empty())
    return fail(peer, peer.channel->failure());
  bool hasMore = peer.failure.empty() && (taken >= bytesPerTurn || peer.channel->hasPending());
  numRestless += size_t(hasMore) - size_t(peer.hasMore);
  peer.hasMore = hasMore;
}

/// What a frame means. False when no rank of this job would send it now.
bool TlsTransport::beginPayload(Peer &peer) {
  const Frame &frame = peer.frame;
  if (frame.freed > peer.theirBlocks - peer.credit)
    return false;
  peer.credit += frame.freed;
  peer.into = none;
  peer.entry = nullptr;
  peer.left = 0;
  switch (frame.kind) {
  case FrameKind::message: {
    if (frame.bytes > largestMessage || peer.lent + ArrivalStore::blocksFor(frame.bytes) > peer.numBlocks)
      return false;
    peer.lent += ArrivalStore::blocksFor(frame.bytes);
    peer.left = frame.bytes;
    uint32_t posted = findPosted(peer, frame.tag);
    if (posted == none && !keepForLater(peer))
      return false;
    if (posted != none) {
      remove(peer.posted, posted);
      slots[posted].found = frame.bytes;
      if (frame.bytes == slots[posted].bytes)
        peer.into = posted;
      else
        slots[posted].state = SlotState::failed;
    }
    break;
  }
  case FrameKind::question: {
    if (peer.numAnswers == peer.answers.size())
      return false;
    uint32_t posted = findPosted(peer, frame.tag);
    if (posted != none) {
      remove(peer.posted, posted);
      answer(peer, posted, frame.id, frame.bytes);
      break;
    }
    ArrivalStore::Entry *entry = peer.arrivals.add(frame.tag, frame.bytes);
    if (!entry)
      return false;
    entry->isQuestion = true;
    entry->askId = frame.id;
    break;
  }
  case FrameKind::answer:
    if (Slot *slot = openSlot(frame.id, true, peer)) {
      slot->receive = frame.receive;
      slot->question = Question::answered;
      if (frame.receive == noReceive)
        slot->state = SlotState::done; // the receiver knows that the sizes differ
      else
        append(peer.sending, uint32_t(frame.id));
    }
    break;
  case FrameKind::part:
    peer.left = frame.bytes;
    if (Slot *slot = openSlot(frame.receive, false, peer)) {
      if (frame.bytes > slot->bytes - slot->moved)
        return false;
      peer.into = uint32_t(frame.receive);
    }
    break;
  case FrameKind::blocks:
    break;
  default:
    return false;
  }
  if (peer.left == 0)
    endPayload(peer);
  return true;
}

bool TlsTransport::keepForLater(Peer &peer) {
  peer.entry = peer.arrivals.add(peer.frame.tag, peer.frame.bytes);
  return peer.entry != nullptr;
}

std::span<char> TlsTransport::roomForPayload(Peer &peer) {
  if (peer.into != none)
    return {slots[peer.into].data + slots[peer.into].moved, peer.left};
  if (peer.entry)
    return peer.arrivals.room(*peer.entry);
  return {discarded, std::min<size_t>(sizeof discarded, peer.left)};
}

void TlsTransport::takePayload(Peer &peer, size_t count) {
  if (peer.into != none)
    slots[peer.into].moved += count;
  else if (peer.entry)
    peer.entry->arrived += count;
  peer.left -= count;
  if (peer.left == 0)
    endPayload(peer);
}

void TlsTransport::endPayload(Peer &peer) {
  peer.frameArrived = 0;
  bool isMessage = peer.frame.kind == FrameKind::message;
  if (ArrivalStore::Entry *entry = std::exchange(peer.entry, nullptr)) {
    if (entry->claimant != none && !entry->isDropped)
      return finishFromEntry(peer, entry->claimant, entry);
    if (!entry->isDropped)
      return; // it waits for its receive
    peer.arrivals.remove(entry);
  }
  if (isMessage)
    giveBack(peer, peer.frame.bytes);
  if (uint32_t index = std::exchange(peer.into, none); index != none && slots[index].moved == slots[index].bytes)
    slots[index].state = SlotState::done;
}

void TlsTransport::finishFromEntry(Peer &peer, uint32_t receive, ArrivalStore::Entry *entry) {
  Slot &slot = slots[receive];
  slot.found = entry->bytes;
  if (entry->bytes == slot.bytes)
    peer.arrivals.copyTo(*entry, slot.data);
  slot.state = entry->bytes == slot.bytes ? SlotState::done : SlotState::failed;
  giveBack(peer, entry->bytes);
  peer.arrivals.remove(entry);
}

void TlsTransport::giveBack(Peer &peer, uint64_t bytes) { peer.owed += ArrivalStore::blocksFor(bytes); }

/// A receive has met the question for it.
void TlsTransport::answer(Peer &peer, uint32_t receive, uint64_t id, uint64_t bytes) {
  Slot &slot = slots[receive];
  slot.found = bytes;
  slot.question = Question::asked;
  bool isFitting = bytes == slot.bytes && peer.failure.empty();
  if (!isFitting)
    slot.state = SlotState::failed;
  if (!peer.failure.empty())
    return;
  // A sender has at most as many questions open as it has requests, so that the ring has room.
  peer.answers[(peer.firstAnswer + peer.numAnswers++) % peer.answers.size()] = {
      .kind = FrameKind::answer, .id = id, .receive = isFitting ? idOf(receive) : noReceive};
}

// Sending.

/// Writes what can be written now.
void TlsTransport::send(Peer &peer) {
  if (!peer.failure.empty())
    return;
  while (true) {
    if (peer.stagedBegin < peer.stagedEnd) {
      if (!writeStaged(peer))
        break;
    } else if (peer.sender != none) {
      if (!writePayload(peer))
        break;
    } else if (!stage(peer)) {
      break;
    }
  }
  if (!peer.channel->failure().empty())
    return fail(peer, peer.channel->failure());
  watch(peer);
}

/// The kernel says when there is room again, only while that is of interest.
void TlsTransport::watch(Peer &peer) {
  bool isBlocked = peer.stagedBegin < peer.stagedEnd || peer.sender != none;
  if (isBlocked == peer.isWatchedForRoom)
    return;
  peer.isWatchedForRoom = isBlocked;
  epoll_event event = {};
  event.events = EPOLLIN | (isBlocked ? EPOLLOUT : 0);
  event.data.u64 = peer.rank;
  epoll_ctl(events, EPOLL_CTL_MOD, peer.channel->descriptor(), &event);
}

bool TlsTransport::writeStaged(Peer &peer) {
  size_t count = peer.channel->write(&peer.staging[peer.stagedBegin], peer.stagedEnd - peer.stagedBegin);
  peer.stagedBegin += count;
  peer.moved += count;
  if (peer.stagedBegin < peer.stagedEnd)
    return count > 0;
  for (uint32_t i = peer.staged.head; i != none;) {
    uint32_t next = slots[i].next;
    slots[i].state = SlotState::done;
    i = next;
  }
  peer.staged = {};
  return true;
}

bool TlsTransport::writePayload(Peer &peer) {
  Slot &slot = slots[peer.sender];
  size_t count = peer.channel->write(slot.data + slot.moved, peer.senderLeft);
  slot.moved += count;
  peer.senderLeft -= count;
  peer.moved += count;
  if (peer.senderLeft > 0)
    return count > 0;
  uint32_t index = std::exchange(peer.sender, none);
  if (slot.moved == slot.bytes)
    slot.state = SlotState::done;
  else
    append(peer.sending, index);
  return true;
}

void TlsTransport::stageFrame(Peer &peer, Frame frame) {
  frame.freed = std::exchange(peer.owed, 0);
  peer.lent -= frame.freed;
  std::memcpy(&peer.staging[peer.stagedEnd], &frame, sizeof frame);
  peer.stagedEnd += sizeof frame;
}

/// Fills the staging area with the next frames. False when there is nothing to say.
bool TlsTransport::stage(Peer &peer) {
  peer.stagedBegin = peer.stagedEnd = 0;
  auto hasRoom = [&] { return peer.stagedEnd + sizeof(Frame) <= peer.staging.size(); };
  while (peer.numAnswers > 0 && hasRoom()) {
    stageFrame(peer, peer.answers[peer.firstAnswer]);
    peer.firstAnswer = (peer.firstAnswer + 1) % peer.answers.size();
    --peer.numAnswers;
  }
  while (peer.sending.head != none && hasRoom()) {
    uint32_t index = peer.sending.head;
    remove(peer.sending, index);
    if (!stageSend(peer, index))
      break;
  }
  if (peer.stagedEnd == 0 && peer.owed >= peer.numBlocks / 4)
    stageFrame(peer, {});
  return peer.stagedEnd > 0;
}

/// Its next frame, with as many of its bytes as fit. False when others have to wait for the rest.
bool TlsTransport::stageSend(Peer &peer, uint32_t index) {
  Slot &slot = slots[index];
  uint32_t blocks = ArrivalStore::blocksFor(slot.bytes);
  Frame frame = {.tag = slot.tag, .bytes = slot.bytes};
  if (slot.question == Question::answered) {
    frame = {.kind = FrameKind::part, .bytes = std::min(slot.bytes - slot.moved, partBytes), .receive = slot.receive};
  } else if (slot.bytes <= peer.largest && blocks <= peer.credit) {
    frame.kind = FrameKind::message;
    peer.credit -= blocks;
  } else {
    frame.kind = FrameKind::question;
    frame.id = idOf(index);
    slot.question = Question::asked;
    stageFrame(peer, frame);
    return true;
  }
  stageFrame(peer, frame);
  size_t count = std::min<size_t>(frame.bytes, peer.staging.size() - peer.stagedEnd);
  if (count > 0)
    std::memcpy(&peer.staging[peer.stagedEnd], slot.data + slot.moved, count);
  peer.stagedEnd += count;
  slot.moved += count;
  if (slot.moved == slot.bytes) {
    append(peer.staged, index);
    return true;
  }
  peer.sender = index;
  peer.senderLeft = frame.bytes - count;
  return false;
}

// Set-up.

/// What a rank tells the others.
struct TlsAddress {
  uint32_t maxRequests = 0, numBlocks = 0;
  uint32_t port = 0;
  char host[64] = "";
  char hostId[512] = "";
};

Status TlsTransport::connect(const AddressExchange &exchange, TlsOptions options) {
  if (options.keys.size() != size_t(numRanks()))
    return Status::error(ErrorKind::runFailed, "rank {}: found {} keys, expected one for each of {} ranks", rank(),
                         options.keys.size(), numRanks());
  auto meeting = detail::TlsMeeting::open(rank(), options.address, std::move(options.keys));
  if (!meeting)
    return meeting.status();
  TlsAddress mine;
  mine.maxRequests = uint32_t(slots.size());
  mine.numBlocks =
      uint32_t(std::clamp(arrivalBytes / size_t(numRanks()), leastOfPeer, mostOfPeer) / ArrivalStore::blockBytes);
  mine.port = (*meeting)->port();
  options.address.copy(mine.host, sizeof mine.host - 1);
  options.hostId.copy(mine.hostId, sizeof mine.hostId - 1);
  auto said = exchange(std::string(reinterpret_cast<const char *>(&mine), sizeof mine));
  if (!said)
    return said.status();
  std::vector<TlsAddress> all(said->size());
  std::vector<SocketAddress> places(said->size());
  for (size_t peer = 0; peer < said->size(); ++peer) {
    if ((*said)[peer].size() != sizeof(TlsAddress))
      return Status::error(ErrorKind::runFailed, "rank {}: the address of rank {} has {} bytes, expected {}", rank(),
                           peer, (*said)[peer].size(), sizeof(TlsAddress));
    std::memcpy(&all[peer], (*said)[peer].data(), sizeof(TlsAddress));
    all[peer].host[sizeof mine.host - 1] = 0; // whatever the peer says, it is text that ends
    if (all[peer].maxRequests > mostRequestsOfPeer || all[peer].numBlocks > mostOfPeer / ArrivalStore::blockBytes)
      return Status::error(ErrorKind::runFailed,
                           "rank {}: rank {} says that it has {} requests and {} blocks, expected at most {} and {}",
                           rank(), peer, all[peer].maxRequests, all[peer].numBlocks, mostRequestsOfPeer,
                           mostOfPeer / ArrivalStore::blockBytes);
    if (int64_t(peer) != rank() && std::strncmp(all[peer].hostId, mine.hostId, sizeof mine.hostId) != 0)
      places[peer] = addressFrom(all[peer].host, uint16_t(all[peer].port));
  }
  DG_RETURN_IF_ERROR((*meeting)->connectAll(places, options.timeout));
  context = (*meeting)->takeContext();
  events = epoll_create1(EPOLL_CLOEXEC);
  auto channels = (*meeting)->takeChannels();
  for (size_t peer = 0; peer < channels.size(); ++peer) {
    if (!channels[peer])
      continue;
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = peer;
    if (events < 0 || epoll_ctl(events, EPOLL_CTL_ADD, channels[peer]->descriptor(), &event) != 0)
      return Status::error(ErrorKind::runFailed, "rank {}: cannot watch the connection with rank {}: {}", rank(), peer,
                           std::strerror(errno));
    peers[peer] = std::make_unique<Peer>(peer, std::move(channels[peer]), mine.numBlocks, all[peer].numBlocks,
                                         all[peer].maxRequests);
    peers[peer]->hasMore = true; // what came with the end of the handshake, the socket does not show
    ++numRestless;
  }
  // Nobody sends before everyone is connected.
  return exchange("").status();
}

} // namespace

Result<std::unique_ptr<Transport>> makeTlsTransport(std::unique_ptr<Transport> local, const AddressExchange &exchange,
                                                    TlsOptions options) {
  auto transport = std::make_unique<TlsTransport>(std::move(local), options.maxRequests);
  DG_RETURN_IF_ERROR(transport->connect(exchange, std::move(options)));
  return std::unique_ptr<Transport>(std::move(transport));
}

} // namespace dg
