// SPDX-License-Identifier: Apache-2.0
// What launchers and ranks say to each other over sockets. The first byte says who listens: a launcher whose peer has
// the key and whose line someone may change in one place, or launchers and ranks to whom these bytes come from a
// stranger.
#include "runtime/launch/link/ControlSocket.h"
#include "runtime/launch/link/Handshake.h"
#include "runtime/launch/link/LaunchMessage.h"
#include "runtime/launch/link/NodeLink.h"
#include "tests/fuzz/FuzzTarget.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

using namespace dg;

namespace {

/// A socket pair of which a reader gets one end.
class Line {
public:
  Line() {
    fuzz::check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0, "a socket pair");
  }
  ~Line() { close(ends[0]); }
  Line(const Line &) = delete;
  int readersEnd() const { return ends[1]; }

  /// Sends the bytes; `read` is called whenever some have come.
  template <typename Read> void send(std::string_view bytes, Read read) {
    while (!bytes.empty()) {
      ssize_t sent = ::send(ends[0], bytes.data(), std::min<size_t>(bytes.size(), 16384), MSG_NOSIGNAL);
      if (sent <= 0)
        return;
      bytes.remove_prefix(size_t(sent));
      read();
    }
  }
  std::string receive() {
    std::string all;
    char part[4096];
    for (ssize_t got; (got = recv(ends[0], part, sizeof part, 0)) > 0;)
      all.append(part, size_t(got));
    return all;
  }
  void end() { shutdown(ends[0], SHUT_WR); }

private:
  int ends[2];
};

/// Takes numbers and texts from the input until nothing is left.
class Input {
public:
  explicit Input(std::string_view bytes) : rest(bytes) {}
  bool isEmpty() const { return rest.empty(); }
  uint64_t number(size_t width) {
    uint64_t value = 0;
    std::string_view bytes = text(width);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::string_view text(size_t most) {
    std::string_view taken = rest.substr(0, most);
    rest.remove_prefix(taken.size());
    return taken;
  }

private:
  std::string_view rest;
};

void readParts(const std::string &text) {
  if (auto parts = unpackParts(text))
    fuzz::check(packParts(*parts) == text, "parts are what was packed");
}

/// As their receivers do, whatever the kind of the message.
void readText(const std::string &text) {
  readParts(text);
  std::vector<RankProgress> ranks = unpackProgress(text);
  fuzz::check(ranks.empty() || packProgress(ranks) == text, "progress is what was packed");
  JoinRequest request, again;
  if (unpackJoin(text, request)) {
    fuzz::check(request.numLocal >= 1 && request.numLocal <= mostRanks,
                "a launcher brings a number of ranks that can be");
    fuzz::check(unpackJoin(packJoin(request), again) && again.numLocal == request.numLocal &&
                    again.hostId == request.hostId && again.fingerprint == request.fingerprint,
                "a request is what was packed");
  }
  RankPlacement placement;
  if (unpackPlacement(text, placement))
    fuzz::check(placement.firstRank >= 0 && placement.numLocal >= 1 && placement.firstLocalRank >= 0 &&
                    placement.firstLocalRank <= mostRanks && placement.numRanks <= mostRanks &&
                    placement.firstRank + placement.numLocal <= placement.numRanks,
                "the ranks of a launcher are ranks of the job");
}

/// Messages of a peer that has the key; one byte of the line is changed, or none.
void tryHonestPeer(Input input) {
  constexpr Digest key = {1, 2, 3};
  const uint64_t place = input.number(2), change = input.number(1);
  Line toPeer, toReader;
  NodeLink peer(toPeer.readersEnd(), key, /*isServer=*/true), reader(toReader.readersEnd(), key, /*isServer=*/false);
  std::vector<LaunchMessage> sent;
  std::vector<size_t> ends;
  std::string wire;
  while (!input.isEmpty() && wire.size() < 65536) {
    LaunchMessage message = {LaunchMessage::Kind(input.number(1)), int64_t(input.number(8)), int64_t(input.number(8))};
    message.text = input.text(input.number(2));
    peer.queue(message);
    fuzz::check(peer.flush(), "an open line can be written to");
    wire += toPeer.receive();
    ends.push_back(wire.size());
    sent.push_back(std::move(message));
  }
  size_t numIntact = sent.size();
  if (change != 0 && !wire.empty()) {
    const size_t at = place % wire.size();
    wire[at] ^= char(change);
    numIntact = size_t(std::upper_bound(ends.begin(), ends.end(), at) - ends.begin());
  }
  size_t numTaken = 0;
  toReader.send(wire, [&] {
    reader.fill();
    while (std::optional<LaunchMessage> message = reader.take()) {
      fuzz::check(numTaken < numIntact, "a message that was changed, and what follows it, is not taken");
      const LaunchMessage &original = sent[numTaken++];
      fuzz::check(message->kind == original.kind && message->rank == original.rank &&
                      message->number == original.number && message->text == original.text,
                  "a message is taken as it was sent");
      readText(message->text);
    }
  });
  fuzz::check(numTaken == numIntact, "a message that was not changed is taken");
}

void tryStranger(std::string_view bytes) {
  Line line;
  NodeLink reader(line.readersEnd(), Digest{7}, false);
  line.send(bytes, [&] {
    reader.fill();
    fuzz::check(!reader.take(), "a message without its proof is not taken");
  });
}

void tryHandshake(std::string_view bytes, bool isServer) {
  Line line;
  const Secret secret("0123456789abcdef");
  auto handshake =
      isServer ? Handshake::asServer(line.readersEnd(), secret) : Handshake::asClient(line.readersEnd(), secret, {});
  line.send(bytes, [&] { handshake->advance(); });
  line.end();
  fuzz::check(handshake->advance() == Handshake::State::refused, "who does not know the secret is refused");
}

void tryRank(std::string_view bytes) {
  Line line;
  ControlSocket socket(line.readersEnd());
  size_t taken = 0;
  line.send(bytes, [&] {
    socket.fill();
    while (std::optional<Frame> frame = socket.take()) {
      const size_t header = 24;
      fuzz::check(taken + header + frame->payload.size() <= bytes.size() &&
                      bytes.substr(taken + header, frame->payload.size()) == frame->payload,
                  "a frame has the bytes that were sent");
      taken += header + frame->payload.size();
      readParts(frame->payload);
    }
  });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  if (size == 0)
    return 0;
  std::string_view bytes(reinterpret_cast<const char *>(data) + 1, size - 1);
  switch (data[0] % 5) {
  case 0:
    tryHonestPeer(Input(bytes));
    break;
  case 1:
    tryStranger(bytes);
    break;
  case 2:
  case 3:
    tryHandshake(bytes, data[0] % 5 == 2);
    break;
  default:
    tryRank(bytes);
  }
  return 0;
}
