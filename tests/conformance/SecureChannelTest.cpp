// SPDX-License-Identifier: Apache-2.0
// Proves that a secure channel gives the bytes that were sent or none: against strangers, wrong keys, a recorded
// handshake, and a man in the middle who flips bits, truncates, repeats, drops and exchanges records.
#include "runtime/transport/SecureChannel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

using namespace dg;

namespace {

using State = SecureChannel::State;

PairKey keyOf(uint8_t byte) {
  PairKey key;
  key.fill(byte);
  return key;
}

std::string drain(int socket) {
  std::string all;
  char buffer[65536];
  for (ssize_t got; (got = recv(socket, buffer, sizeof buffer, MSG_DONTWAIT)) > 0;)
    all.append(buffer, size_t(got));
  return all;
}

void put(int socket, const std::string &bytes) {
  ASSERT_EQ(ssize_t(bytes.size()), send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL));
}

/// A client and a server, and who stands between them.
struct Wire {
  explicit Wire(PairKey clientKey = keyOf(7), uint64_t keyLife = SecureContext::recordsPerKey) {
    auto made = SecureContext::make([this](PairName pair) { return pair.server == 0 ? &serverKey : nullptr; }, keyLife);
    EXPECT_TRUE(made) << made.status().message();
    context = std::move(*made);
    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, left));
    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, right));
    client = SecureChannel::asClient(*context, left[0], {.client = 1, .server = 0}, clientKey);
    server = SecureChannel::asServer(*context, right[0]);
  }
  ~Wire() {
    close(left[1]);
    close(right[1]);
  }
  /// Passes on what both have said; `change` sees each piece first.
  void pass(const std::function<std::string(std::string)> &change = nullptr) {
    std::string forth = drain(left[1]), back = drain(right[1]);
    fromClient += forth;
    put(right[1], change ? change(forth) : forth);
    put(left[1], back);
  }
  void shakeHands() {
    for (int i = 0; i < 8; ++i) {
      client->shakeHands();
      server->shakeHands();
      pass();
    }
  }
  /// All that the server can read.
  std::string read() {
    std::string all;
    char buffer[1000];
    for (size_t got; (got = server->read(buffer, sizeof buffer)) > 0;)
      all.append(buffer, got);
    return all;
  }

  PairKey serverKey = keyOf(7);
  std::unique_ptr<SecureContext> context;
  int left[2], right[2];
  std::unique_ptr<SecureChannel> client, server;
  std::string fromClient;
};

// Two that share a key talk, in both directions.
TEST(SecureChannel, carriesBytes) {
  Wire wire;
  wire.shakeHands();
  ASSERT_EQ(State::done, wire.client->shakeHands()) << wire.client->failure();
  ASSERT_EQ(State::done, wire.server->shakeHands()) << wire.server->failure();
  EXPECT_EQ(1u, wire.server->pair().client);
  EXPECT_EQ(5u, wire.client->write("hello", 5));
  wire.pass();
  EXPECT_EQ("hello", wire.read());
  EXPECT_EQ("", wire.server->failure());
  wire.client->sayGoodbye();
  wire.pass();
  EXPECT_EQ("", wire.read());
  EXPECT_EQ("it has closed the connection", wire.server->failure());
}

// Keys are renewed while bytes go both ways.
TEST(SecureChannel, renewsKeys) {
  Wire wire(keyOf(7), 3);
  wire.shakeHands();
  ASSERT_EQ(State::done, wire.server->shakeHands()) << wire.server->failure();
  for (int i = 0; i < 100; ++i) {
    std::string forth = "forth " + std::to_string(i), back = "back " + std::to_string(i);
    ASSERT_EQ(forth.size(), wire.client->write(forth.data(), forth.size())) << wire.client->failure();
    ASSERT_EQ(back.size(), wire.server->write(back.data(), back.size())) << wire.server->failure();
    wire.pass();
    char buffer[100];
    ASSERT_EQ(back.size(), wire.client->read(buffer, sizeof buffer)) << wire.client->failure();
    EXPECT_EQ(back, std::string(buffer, back.size()));
    EXPECT_EQ(forth, wire.read()) << wire.server->failure();
  }
}

// Neither side ends a handshake with who has another key.
TEST(SecureChannel, refusesAnotherKey) {
  Wire wire(keyOf(8));
  wire.shakeHands();
  EXPECT_EQ(State::failed, wire.client->shakeHands());
  EXPECT_EQ(State::failed, wire.server->shakeHands());
  EXPECT_NE(std::string::npos, wire.server->failure().find("no proof of the key")) << wire.server->failure();
}

// A rank that nobody expects has no key.
TEST(SecureChannel, refusesAnotherPair) {
  Wire wire;
  wire.client = SecureChannel::asClient(*wire.context, dup(wire.left[0]), {.client = 1, .server = 3}, keyOf(7));
  wire.shakeHands();
  EXPECT_EQ(State::failed, wire.server->shakeHands());
}

// What a stranger sends ends his own connection, whatever it is: the 37 bytes that ended a rank over UCX, and others.
TEST(SecureChannel, refusesStrangers) {
  std::mt19937_64 random(20261118);
  for (size_t length : {size_t(1), size_t(5), size_t(37), size_t(100), size_t(4096)})
    for (int turn = 0; turn < 20; ++turn) {
      Wire wire;
      std::string bytes(length, '\0');
      for (char &byte : bytes)
        byte = char(random());
      if (turn % 2)
        bytes.replace(0, std::min<size_t>(3, length),
                      std::string("\x16\x03\x01").substr(0, std::min<size_t>(3, length)));
      put(wire.right[1], bytes);
      EXPECT_NE(State::done, wire.server->shakeHands()) << length;
    }
}

// What one client said, said again to a server of the same run, does not end a handshake and brings no bytes.
TEST(SecureChannel, refusesARecording) {
  Wire first;
  first.shakeHands();
  ASSERT_EQ(State::done, first.server->shakeHands()) << first.server->failure();
  first.client->write("numbers", 7);
  first.pass();
  Wire second;
  put(second.right[1], first.fromClient);
  for (int i = 0; i < 8; ++i)
    EXPECT_NE(State::done, second.server->shakeHands());
  EXPECT_EQ(State::failed, second.server->shakeHands());
}

// A bit of a handshake that is flipped on the way ends it, or was one that TLS says nothing with (the version in the
// head of a record): then both hold the same keys all the same.
TEST(SecureChannel, refusesAChangedHandshake) {
  std::mt19937_64 random(42);
  int numEnded = 0;
  for (int turn = 0; turn < 100; ++turn) {
    Wire wire;
    bool isFlipped = false;
    auto flip = [&](std::string bytes) {
      if (!bytes.empty() && !isFlipped && random() % 2) {
        bytes[random() % bytes.size()] ^= char(1 << random() % 8);
        isFlipped = true;
      }
      return bytes;
    };
    for (int i = 0; i < 8; ++i) {
      wire.client->shakeHands();
      wire.server->shakeHands();
      wire.pass(flip);
    }
    numEnded += isFlipped && wire.server->shakeHands() == State::done;
    if (wire.server->shakeHands() == State::done && wire.client->write("numbers", 7) == 7) {
      wire.pass();
      EXPECT_EQ("numbers", wire.read()) << "turn " << turn;
    }
  }
  EXPECT_LT(numEnded, 10);
}

/// The records of a stretch of TLS.
std::vector<std::string> split(const std::string &bytes) {
  std::vector<std::string> records;
  for (size_t at = 0; at + 5 <= bytes.size();) {
    size_t length = 5 + size_t(uint8_t(bytes[at + 3])) * 256 + uint8_t(bytes[at + 4]);
    records.push_back(bytes.substr(at, length));
    at += length;
  }
  return records;
}

std::string join(const std::vector<std::string> &records) {
  std::string all;
  for (const std::string &record : records)
    all += record;
  return all;
}

// However the records are changed on the way, the reader gets bytes as they were sent, up to the change, and then the
// reason why there are no more; never another byte.
TEST(SecureChannel, findsWhatIsChangedOnTheWay) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const char *names[] = {"flip", "truncate", "drop", "repeat", "exchange", "insert"};
  for (int turn = 0; turn < 600; ++turn) {
    Wire wire;
    wire.shakeHands();
    ASSERT_EQ(State::done, wire.server->shakeHands()) << wire.server->failure();
    std::string sent;
    const size_t numRecords = 2 + random() % 6;
    for (size_t i = 0; i < numRecords; ++i) {
      std::string part(1 + random() % 3000, '\0');
      for (char &byte : part)
        byte = char(random());
      ASSERT_EQ(part.size(), wire.client->write(part.data(), part.size()));
      sent += part;
    }
    const int attack = turn % 6;
    bool isCut = false;
    wire.pass([&](const std::string &bytes) {
      std::vector<std::string> records = split(bytes);
      size_t which = random() % records.size();
      std::string &record = records[which];
      switch (attack) {
      case 0:
        record[random() % record.size()] ^= char(1 << random() % 8);
        isCut = true; // a changed length waits for bytes that do not come
        break;
      case 1:
        record.resize(random() % record.size());
        records.resize(which + 1);
        isCut = true;
        break;
      case 2:
        if (which + 1 == records.size())
          isCut = true;
        records.erase(records.begin() + ptrdiff_t(which));
        break;
      case 3:
        records.insert(records.begin() + ptrdiff_t(which), records[which]);
        break;
      case 4:
        std::swap(records[0], records[1 + random() % (records.size() - 1)]);
        break;
      default:
        records.insert(records.begin() + ptrdiff_t(which),
                       std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x'));
      }
      return join(records);
    });
    std::string got = wire.read();
    if (isCut) {
      shutdown(wire.right[1], SHUT_WR);
      got += wire.read();
    }
    EXPECT_NE("", wire.server->failure()) << names[attack];
    EXPECT_EQ(sent.substr(0, got.size()), got) << names[attack];
    EXPECT_TRUE(got.size() < sent.size() || attack == 3) << names[attack];
  }
}

} // namespace
