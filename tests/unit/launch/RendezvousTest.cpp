// SPDX-License-Identifier: Apache-2.0
// Proves that only who knows the secret comes in, whatever strangers send and however many they are, and that messages
// between launchers cannot be changed or repeated.
#include "runtime/launch/link/Rendezvous.h"
#include "runtime/launch/link/JobKeys.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <random>
#include <set>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "tests/unit/TemporaryFolder.h"

using namespace dg;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const Secret secret("a secret of this test only");

/// A rendezvous that is served by a thread until it is closed, as a launcher does.
class Door {
public:
  explicit Door(const Secret &secretHere = secret) {
    auto made = RendezvousPoint::listen("127.0.0.1", secretHere);
    point = std::move(*made);
    where = *resolveEndpoint(point->endpoint());
    server = std::thread([this] {
      while (!isClosed) {
        PollSet set;
        point->addTo(set);
        set.wait(milliseconds(5));
        for (Arrival &arrival : point->takeArrivals()) {
          arrival.link->queue({.kind = LaunchMessage::Kind::end, .number = int64_t(arrival.greeting.node)});
          arrival.link->flush();
          links.push_back(std::move(arrival.link));
          ++numArrived;
        }
      }
    });
  }
  ~Door() { close(); }
  void close() {
    isClosed = true;
    if (server.joinable())
      server.join();
  }

  /// A blocking connection of someone who may send anything.
  int connect() {
    int socket = startConnecting(where[0]);
    pollfd entry = {socket, POLLOUT, 0};
    poll(&entry, 1, 5000);
    fcntl(socket, F_SETFL, 0);
    timeval limit = {10, 0};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return socket;
  }
  Result<std::unique_ptr<NodeLink>> join(uint32_t node, const Secret &with = secret) {
    return joinRendezvous(where, with, {node, Greeting::Purpose::join}, deadlineIn(seconds(20)));
  }

  std::unique_ptr<RendezvousPoint> point;
  std::vector<SocketAddress> where;
  std::vector<std::unique_ptr<NodeLink>> links;
  std::atomic<int> numArrived{0};

private:
  std::atomic<bool> isClosed{false};
  std::thread server;
};

std::string readAll(int socket, size_t bytes) {
  std::string text(bytes, '\0');
  ssize_t got = recv(socket, text.data(), bytes, MSG_WAITALL);
  text.resize(size_t(std::max<ssize_t>(got, 0)));
  return text;
}

constexpr size_t helloBytes = 40, proofBytes = 72;

TEST(Rendezvous, whoKnowsTheSecretComesIn) {
  Door door;
  auto link = door.join(7);
  ASSERT_TRUE(link) << link.status().message();
  std::optional<LaunchMessage> message;
  Deadline limit = deadlineIn(seconds(10));
  while (!(message = (*link)->take()) && std::chrono::steady_clock::now() < limit)
    (*link)->fill();
  ASSERT_TRUE(message);
  EXPECT_EQ(7, message->number);
}

TEST(Rendezvous, wrongSecretIsAUsageError) {
  Door door;
  auto link = door.join(1, Secret("some other secret"));
  ASSERT_FALSE(link);
  EXPECT_EQ(ErrorKind::usage, link.status().kind());
  EXPECT_NE(std::string::npos, link.status().message().find("does not know this secret")) << link.status().message();
  door.close();
  EXPECT_EQ(0, door.numArrived);
  EXPECT_EQ(3u, door.point->numRefused());
}

// A door that does not know the secret cannot pretend to.
TEST(Rendezvous, falseServerIsNotBelieved) {
  Door door(Secret("the secret of an impostor"));
  auto link = door.join(1);
  EXPECT_FALSE(link);
}

TEST(Rendezvous, noiseIsClosedOut) {
  Door door;
  std::random_device seed;
  unsigned number = seed();
  SCOPED_TRACE(fmt::format("seed {}", number));
  std::minstd_rand generator(number);
  for (size_t length : {1, 71, 72, 73, 5000}) {
    int stranger = door.connect();
    EXPECT_EQ(helloBytes, readAll(stranger, helloBytes).size());
    std::string noise(length, '\0');
    for (char &byte : noise)
      byte = char(generator());
    (void)send(stranger, noise.data(), noise.size(), MSG_NOSIGNAL);
    shutdown(stranger, SHUT_WR);
    EXPECT_EQ("", readAll(stranger, 1)) << length; // closed without a word
    close(stranger);
  }
  EXPECT_TRUE(door.join(1));
  door.close();
  EXPECT_EQ(1, door.numArrived);
}

// What a member said once does not open the door again: the server's nonce is another.
TEST(Rendezvous, replayIsRefused) {
  Door door;
  int relay = door.connect();
  std::string hello = readAll(relay, helloBytes);
  int pair[2];
  ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
  auto member = Handshake::asClient(pair[0], secret, {3, Greeting::Purpose::join});
  (void)send(pair[1], hello.data(), hello.size(), 0);
  member->advance();
  fcntl(pair[1], F_SETFL, 0);
  std::string recorded = readAll(pair[1], proofBytes);
  ASSERT_EQ(proofBytes, recorded.size());
  (void)send(relay, recorded.data(), recorded.size(), MSG_NOSIGNAL);
  EXPECT_EQ(32u, readAll(relay, 32).size()); // the first time it is genuine
  int again = door.connect();
  readAll(again, helloBytes);
  (void)send(again, recorded.data(), recorded.size(), MSG_NOSIGNAL);
  EXPECT_EQ("", readAll(again, 1));
  close(relay);
  close(again);
  close(pair[1]);
  door.close();
  EXPECT_EQ(1, door.numArrived);
}

// A thousand connections that say nothing neither fill the process nor keep a member out.
TEST(Rendezvous, halfOpenConnectionsAreNoHindrance) {
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  setrlimit(RLIMIT_NOFILE, &files);
  Door door;
  std::vector<int> strangers;
  for (int i = 0; i < 1000; ++i) {
    strangers.push_back(startConnecting(door.where[0]));
    ASSERT_GE(strangers.back(), 0) << i;
  }
  auto link = door.join(1);
  EXPECT_TRUE(link) << link.status().message();
  for (int stranger : strangers)
    close(stranger);
}

TEST(Rendezvous, nobodyThereIsAnError) {
  std::vector<SocketAddress> where;
  {
    Door door;
    where = door.where;
  }
  auto link = joinRendezvous(where, secret, {1, Greeting::Purpose::join}, deadlineIn(milliseconds(300)));
  ASSERT_FALSE(link);
  EXPECT_NE(std::string::npos, link.status().message().find("nobody answers at the rendezvous 127.0.0.1:"))
      << link.status().message();
}

/// Sockets that have connected and say nothing.
std::vector<int> crowdAt(const RendezvousPoint &point, size_t count) {
  std::vector<int> crowd;
  for (size_t i = 0; i < count; ++i)
    crowd.push_back(startConnecting((*resolveEndpoint(point.endpoint()))[0]));
  for (int socket : crowd) {
    pollfd entry = {socket, POLLOUT, 0};
    poll(&entry, 1, 5000);
  }
  return crowd;
}

void closeAll(const std::vector<int> &descriptors) {
  for (int descriptor : descriptors)
    close(descriptor);
}

// A crowd comes in a few at a time: those who are in have their turns in between.
TEST(Rendezvous, letsFewInAtOnce) {
  auto point = std::move(*RendezvousPoint::listen("127.0.0.1", secret));
  std::vector<int> crowd = crowdAt(*point, 100);
  PollSet set;
  point->addTo(set);
  set.wait(seconds(5));
  EXPECT_EQ(1u + 16u, point->descriptors().size());
  closeAll(crowd);
}

// At the limit of descriptors the door rests instead of spinning, and opens again.
TEST(Rendezvous, restsWithoutDescriptors) {
  auto point = std::move(*RendezvousPoint::listen("127.0.0.1", secret));
  std::vector<int> crowd = crowdAt(*point, 20), taken;
  rlimit before, small;
  getrlimit(RLIMIT_NOFILE, &before);
  small = before;
  small.rlim_cur = 200;
  setrlimit(RLIMIT_NOFILE, &small);
  for (int descriptor; (descriptor = dup(0)) >= 0;)
    taken.push_back(descriptor);
  size_t turns = 0;
  for (auto end = deadlineIn(milliseconds(1000)); std::chrono::steady_clock::now() < end; ++turns) {
    PollSet set;
    point->addTo(set);
    set.wait(milliseconds(100));
    (void)point->takeArrivals();
  }
  EXPECT_LT(turns, 40u);
  EXPECT_EQ(1u, point->descriptors().size());
  closeAll(taken);
  setrlimit(RLIMIT_NOFILE, &before);
  for (auto end = deadlineIn(seconds(10));
       point->descriptors().size() < 21 && std::chrono::steady_clock::now() < end;) {
    PollSet set;
    point->addTo(set);
    set.wait(milliseconds(100));
  }
  EXPECT_EQ(21u, point->descriptors().size());
  closeAll(crowd);
}

TEST(Endpoint, textAndBack) {
  for (const char *text : {"127.0.0.1:4711", "[::1]:80", "unix:dg-test"})
    EXPECT_EQ(text, describeAddress((*resolveEndpoint(text))[0]));
  EXPECT_EQ("127.0.0.1:0", describeAddress((*resolveEndpoint("127.0.0.1"))[0]));
  EXPECT_EQ("[::1]:0", describeAddress((*resolveEndpoint("::1"))[0]));
  EXPECT_EQ(2u, resolveEndpoint("127.0.0.1:1,127.0.0.2:2")->size());
  for (const char *text : {"", ":1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "[::1", "[::1]x"})
    EXPECT_EQ(ErrorKind::usage, resolveEndpoint(text).status().kind()) << text;
  EXPECT_FALSE(resolveEndpoint("no-such-host.invalid:1"));
}

TEST(Secret, comesFromFileOrEnvironment) {
  test::TemporaryFolder folder;
  std::string path = folder.path("secret");
  std::ofstream(path) << "0123456789abcdef\n";
  auto found = [](const char *file, const char *text) {
    file ? setenv("DG_SECRET_FILE", file, 1) : unsetenv("DG_SECRET_FILE");
    text ? setenv("DG_SECRET", text, 1) : unsetenv("DG_SECRET");
    auto read = readSecret();
    return read ? std::string(read->view()) : read.status().message();
  };
  chmod(path.c_str(), 0600);
  EXPECT_EQ("0123456789abcdef", found(path.c_str(), nullptr));
  EXPECT_EQ("a secret in the environment", found(nullptr, "a secret in the environment"));
  chmod(path.c_str(), 0640);
  EXPECT_NE(std::string::npos, found(path.c_str(), nullptr).find("others may read or write it (mode 640)"));
  EXPECT_NE(std::string::npos, found("/no/such/file", nullptr).find("cannot be read: No such file"));
  EXPECT_NE(std::string::npos, found(nullptr, "short").find("found a secret of 5 characters, expected at least 16"));
  EXPECT_NE(std::string::npos, found(nullptr, nullptr).find("several nodes need a secret"));
}

// A child has neither the secret nor what it was read from.
TEST(Secret, isNotInAChild) {
  const std::string text = "only the launcher knows this";
  setenv("DG_SECRET", text.c_str(), 1);
  const char *inEnvironment = getenv("DG_SECRET");
  auto read = readSecret();
  ASSERT_TRUE(read);
  EXPECT_EQ(text, read->view());
  EXPECT_EQ(nullptr, getenv("DG_SECRET"));
  EXPECT_STREQ("", inEnvironment);
  Secret copy = *read;
  pid_t child = fork();
  if (child == 0)
    _exit(read->view() == std::string(text.size(), '\0') && copy.view() == read->view() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_EQ(0, status);
  EXPECT_EQ(text, copy.view());
}

// Two ranks have the same key, and no two pairs, runs or secrets have the same.
TEST(JobKeys, areOfPairAndRun) {
  std::set<Digest> all;
  constexpr int64_t numRanks = 5;
  for (const char *job : {"a secret of this test", "another secret"})
    for (const char *run : {"first run", "second run"}) {
      Secret key = runKeyOf(Secret(job), run);
      std::vector<std::vector<Digest>> keys;
      for (int64_t rank = 0; rank < numRanks; ++rank)
        keys.push_back(pairKeysOf(key, rank, numRanks));
      for (size_t low = 0; low < numRanks; ++low)
        for (size_t high = low + 1; high < numRanks; ++high) {
          EXPECT_EQ(keys[low][high], keys[high][low]);
          all.insert(keys[low][high]);
        }
    }
  EXPECT_EQ(all.size(), size_t(4 * numRanks * (numRanks - 1) / 2));
}

class Link : public testing::Test {
protected:
  void SetUp() override { ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets)); }
  int sockets[2];
  Digest key = sha256("session");
};

TEST_F(Link, messagesArriveWholeAndInOrder) {
  NodeLink server(sockets[0], key, true), client(sockets[1], key, false);
  for (int64_t number = 0; number < 50; ++number)
    server.queue({LaunchMessage::Kind::part, number, -number, std::string(size_t(number * 1000), 'x')});
  int64_t next = 0;
  while (next < 50) {
    ASSERT_TRUE(server.flush());
    ASSERT_TRUE(client.fill());
    while (auto message = client.take()) {
      EXPECT_EQ(next, message->rank);
      EXPECT_EQ(-next, message->number);
      EXPECT_EQ(size_t(next * 1000), message->text.size());
      ++next;
    }
  }
}

// Any changed bit, another key, a message sent twice, or one's own message sent back end the line.
TEST_F(Link, forgeriesEndTheLine) {
  auto wireOf = [&](std::optional<Digest> digest) {
    int pair[2];
    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
    NodeLink server(pair[0], key, true);
    const LaunchMessage message = {.kind = LaunchMessage::Kind::stop, .number = 1, .text = "x"};
    digest ? server.queue(message, *digest) : server.queue(message);
    server.flush();
    std::string wire = readAll(pair[1], 8 + 24 + 1 + 32);
    close(pair[1]);
    return wire;
  };
  const std::string wire = wireOf(std::nullopt);
  auto accepts = [&](const std::string &bytes, const Digest &with, bool isServer) {
    int pair[2];
    EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair));
    NodeLink end(pair[0], with, isServer);
    (void)send(pair[1], bytes.data(), bytes.size(), 0);
    end.fill();
    int count = 0;
    while (end.take())
      ++count;
    bool isOpen = end.fill();
    close(pair[1]);
    return std::pair(count, isOpen);
  };
  EXPECT_EQ(std::pair(1, true), accepts(wire, key, false));
  // The proof is over the digest of this text and no other.
  EXPECT_EQ(std::pair(1, true), accepts(wireOf(sha256("x")), key, false));
  EXPECT_EQ(std::pair(0, false), accepts(wireOf(sha256("y")), key, false));
  EXPECT_EQ(std::pair(0, false), accepts(wire, sha256("another"), false));
  EXPECT_EQ(std::pair(0, false), accepts(wire, key, true));
  EXPECT_EQ(std::pair(1, false), accepts(wire + wire, key, false));
  for (size_t at = 8; at < wire.size(); ++at) {
    std::string changed = wire;
    changed[at] = char(changed[at] ^ 4);
    EXPECT_EQ(std::pair(0, false), accepts(changed, key, false)) << at;
  }
  std::string huge = wire;
  huge[6] = '\x7f';
  EXPECT_EQ(std::pair(0, false), accepts(huge, key, false));
}

} // namespace
