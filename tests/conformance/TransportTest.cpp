// SPDX-License-Identifier: Apache-2.0
// Proves that every transport keeps the promises of Transport.h: order, sizes, many at once, failures that are told and
// not fatal.
#include "tests/conformance/Ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <random>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace dg;
using namespace dg::test;

namespace {

class TransportTest : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, TransportTest,
                         testing::Values(Kind::inProcess, Kind::ucxThreads, Kind::ucxProcesses, Kind::tcpProcesses,
                                         Kind::tlsThreads, Kind::tlsProcesses),
                         [](const auto &info) { return nameOf(info.param); });

/// Bytes that tell sender, message and position apart.
std::vector<uint8_t> pattern(int64_t sender, size_t message, size_t bytes) {
  std::vector<uint8_t> data(bytes);
  uint32_t state = uint32_t(sender * 7919 + int64_t(message) * 104729 + 12345);
  for (uint8_t &byte : data) {
    state = state * 1664525 + 1013904223;
    byte = uint8_t(state >> 24);
  }
  return data;
}

// Messages of every protocol's size arrive whole, in both directions at once.
TEST_P(TransportTest, carriesEverySize) {
  const std::vector<size_t> sizes = {0,    1,    3,     64,    127,    1000,    4095,           8192,
                                     8193, 8257, 65537, 99999, 262144, 1048583, size_t(8) << 20};
  EXPECT_EQ("", runRanks(GetParam(), 2, [&](Transport &transport) -> std::string {
              int64_t peer = 1 - transport.rank();
              for (size_t i = 0; i < sizes.size(); ++i) {
                auto sent = pattern(transport.rank(), i, sizes[i]), wanted = pattern(peer, i, sizes[i]);
                std::vector<uint8_t> got(sizes[i] + 1, 0xab);
                auto receive = transport.startReceive(peer, 5, got.data(), sizes[i]);
                auto send = transport.startSend(peer, 5, sent.data(), sizes[i]);
                if (auto text = await(transport, receive) + await(transport, send); !text.empty())
                  return text;
                if (sizes[i] && std::memcmp(got.data(), wanted.data(), sizes[i]) != 0)
                  return fmt::format("{} bytes: other bytes than were sent", sizes[i]);
                if (got.back() != 0xab)
                  return fmt::format("{} bytes: written past the end", sizes[i]);
              }
              return "";
            }));
}

// Messages with equal peer and tag arrive in the order in which they were sent, small and large mixed, posted before or
// after they come.
TEST_P(TransportTest, keepsOrder) {
  EXPECT_EQ("", runRanks(GetParam(), 2, [&](Transport &transport) -> std::string {
              constexpr size_t count = 64;
              int64_t peer = 1 - transport.rank();
              auto sizeOf = [](size_t i) { return i % 5 == 3 ? size_t(100000) : 8 + i; };
              std::vector<std::vector<uint8_t>> sent, got;
              std::vector<Transport::Request> requests;
              for (size_t i = 0; i < count; ++i) {
                sent.push_back(pattern(transport.rank(), i, sizeOf(i)));
                got.emplace_back(sizeOf(i));
              }
              bool isEarly = transport.rank() == 0;
              for (int pass = 0; pass < 2; ++pass)
                for (size_t i = 0; i < count; ++i)
                  requests.push_back((pass == 0) == isEarly
                                         ? transport.startReceive(peer, 9, got[i].data(), got[i].size())
                                         : transport.startSend(peer, 9, sent[i].data(), sent[i].size()));
              for (auto request : requests)
                if (auto text = await(transport, request); !text.empty())
                  return text;
              for (size_t i = 0; i < count; ++i)
                if (got[i] != pattern(peer, i, sizeOf(i)))
                  return fmt::format("message {} is not the one sent as number {}", i, i);
              return "";
            }));
}

// Tags and peers are told apart: receives posted in another order than the sends get their own message.
TEST_P(TransportTest, matchesPeerAndTag) {
  EXPECT_EQ("", runRanks(GetParam(), 3, [&](Transport &transport) -> std::string {
              const std::vector<uint64_t> tags = {0, 1, 65536, maxTag};
              int64_t self = transport.rank();
              std::vector<uint64_t> sent, got(3 * tags.size());
              for (int64_t peer = 0; peer < 3; ++peer)
                for (size_t t = 0; t < tags.size(); ++t)
                  sent.push_back(uint64_t(self * 100 + peer * 10) + t);
              std::vector<Transport::Request> requests;
              for (size_t i = sent.size(); i-- > 0;)
                requests.push_back(transport.startReceive(int64_t(i / tags.size()), tags[i % tags.size()], &got[i], 8));
              for (size_t i = 0; i < sent.size(); ++i)
                requests.push_back(transport.startSend(int64_t(i / tags.size()), tags[i % tags.size()], &sent[i], 8));
              for (auto request : requests)
                if (auto text = await(transport, request); !text.empty())
                  return text;
              for (size_t i = 0; i < got.size(); ++i)
                if (uint64_t wanted = (i / tags.size()) * 100 + uint64_t(self * 10) + i % tags.size(); got[i] != wanted)
                  return fmt::format("found {}, expected {}", got[i], wanted);
              return "";
            }));
}

// A thousand open requests at once end, and the pool serves again and again.
TEST_P(TransportTest, holdsManyAtOnce) {
  EXPECT_EQ("", runRanks(GetParam(), 2, [&](Transport &transport) -> std::string {
              int64_t peer = 1 - transport.rank();
              std::vector<uint32_t> sent(500), got(500);
              for (uint32_t round = 0; round < 20; ++round) {
                std::vector<Transport::Request> requests;
                for (uint32_t i = 0; i < 500; ++i) {
                  sent[i] = round * 1000 + i;
                  requests.push_back(transport.startReceive(peer, i, &got[i], 4));
                }
                for (uint32_t i = 0; i < 500; ++i)
                  requests.push_back(transport.startSend(peer, i, &sent[i], 4));
                for (size_t i = requests.size(); i-- > 0;)
                  if (auto text = await(transport, requests[i]); !text.empty())
                    return text;
                if (got != sent)
                  return fmt::format("round {}: other values than were sent", round);
              }
              return "";
            }));
}

// A receive of another size than its message fails with both numbers (or the limit), and the next message is not hurt.
TEST_P(TransportTest, refusesOtherSizes) {
  for (auto [sentBytes, gotBytes] :
       {std::pair<size_t, size_t>(16, 8), {8, 16}, {300000, 1000}, {300000, 400000}, {0, 4}})
    EXPECT_EQ("", runRanks(GetParam(), 2,
                           [&, sentBytes = sentBytes, gotBytes = gotBytes](Transport &transport) -> std::string {
                             std::vector<uint8_t> buffer(400000), after(8);
                             if (transport.rank() == 0) {
                               // Whether the sender learns of it depends on the transport.
                               (void)await(transport, transport.startSend(1, 3, buffer.data(), sentBytes));
                               return await(transport, transport.startSend(1, 4, after.data(), 8));
                             }
                             auto text = await(transport, transport.startReceive(0, 3, buffer.data(), gotBytes));
                             if (text.find("expected") == std::string::npos || text.find("rank 0") == std::string::npos)
                               return fmt::format("{} into {}: the failure said '{}'", sentBytes, gotBytes, text);
                             return await(transport, transport.startReceive(0, 4, after.data(), 8));
                           }));
}

// More comes early than a transport can keep: nothing is lost, and what is sent last does not wait for it.
TEST_P(TransportTest, keepsWhatComesEarly) {
  EXPECT_EQ("", runRanks(GetParam(), 2, [&](Transport &transport) -> std::string {
              constexpr size_t count = 300, bytes = 60000;
              std::vector<std::vector<uint8_t>> buffers(count);
              std::vector<Transport::Request> requests;
              uint64_t last = 0;
              if (transport.rank() == 0) {
                for (size_t i = 0; i < count; ++i) {
                  buffers[i] = pattern(0, i, bytes);
                  requests.push_back(transport.startSend(1, i, buffers[i].data(), bytes));
                }
                requests.push_back(transport.startSend(1, count, &last, sizeof last));
              } else {
                if (auto text = await(transport, transport.startReceive(0, count, &last, sizeof last)); !text.empty())
                  return text;
                for (size_t i = count; i-- > 0;) {
                  buffers[i].resize(bytes);
                  requests.push_back(transport.startReceive(0, i, buffers[i].data(), bytes));
                }
              }
              for (auto request : requests)
                if (auto text = await(transport, request); !text.empty())
                  return text;
              // The receiver stays until the sender knows that all is done: UCX may owe it an answer.
              auto farewell = transport.rank() == 0 ? transport.startSend(1, count + 1, &last, sizeof last)
                                                    : transport.startReceive(0, count + 1, &last, sizeof last);
              if (auto text = await(transport, farewell); !text.empty())
                return text;
              for (size_t i = 0; i < count; ++i)
                if (buffers[i] != pattern(0, i, bytes))
                  return fmt::format("message {}: other bytes", i);
              return "";
            }));
}

/// What one rank sends another: a few tags, sizes of every order of magnitude.
struct Letter {
  uint64_t tag;
  size_t bytes;
};

std::vector<Letter> lettersOf(uint64_t seed, int64_t from, int64_t to) {
  std::mt19937_64 random(seed * 1000 + uint64_t(from * 10 + to));
  std::vector<Letter> letters;
  for (int i = 0; i < 40; ++i)
    letters.push_back({random() % 3, size_t(random() % (size_t(1) << random() % 22))});
  return letters;
}

// Random messages between three ranks, started in a random order with progress in between: each receive gets the next
// message of its peer and tag.
TEST_P(TransportTest, carriesWhateverComes) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  EXPECT_EQ("", runRanks(GetParam(), 3, [&](Transport &transport) -> std::string {
              const int64_t self = transport.rank();
              struct Open {
                Transport::Request request;
                std::vector<uint8_t> data;
                int64_t from = -1;
                size_t number = 0; ///< among what `from` sends to this rank
              };
              struct Line { ///< all of one peer and direction, or of one peer and tag
                int64_t peer;
                bool isSend;
                std::vector<size_t> numbers;
                size_t next = 0;
              };
              std::mt19937_64 random(seed + 77 * uint64_t(self));
              std::vector<Line> lines;
              for (int64_t peer = 0; peer < 3; ++peer) {
                lines.push_back({peer, true, {}});
                for (size_t i = 0; i < lettersOf(seed, self, peer).size(); ++i)
                  lines.back().numbers.push_back(i);
                auto coming = lettersOf(seed, peer, self);
                for (uint64_t tag = 0; tag < 3; ++tag) {
                  lines.push_back({peer, false, {}});
                  for (size_t i = 0; i < coming.size(); ++i)
                    if (coming[i].tag == tag)
                      lines.back().numbers.push_back(i);
                }
              }
              std::vector<Open> all;
              all.reserve(1000);
              while (true) {
                std::erase_if(lines, [](const Line &line) { return line.next == line.numbers.size(); });
                if (lines.empty())
                  break;
                Line &line = lines[random() % lines.size()];
                size_t number = line.numbers[line.next++];
                Open &open = all.emplace_back();
                if (line.isSend) {
                  Letter letter = lettersOf(seed, self, line.peer)[number];
                  open.data = pattern(self * 3 + line.peer, number, letter.bytes);
                  open.request = transport.startSend(line.peer, letter.tag, open.data.data(), letter.bytes);
                } else {
                  Letter letter = lettersOf(seed, line.peer, self)[number];
                  open.data.resize(letter.bytes);
                  open.from = line.peer;
                  open.number = number;
                  open.request = transport.startReceive(line.peer, letter.tag, open.data.data(), letter.bytes);
                }
                if (random() % 4 == 0)
                  transport.advance();
              }
              for (Open &open : all)
                if (auto text = await(transport, open.request); !text.empty())
                  return text;
              uint64_t words[6] = {}; // all stay until all are done, as above
              std::vector<Transport::Request> farewells;
              for (size_t peer = 0; peer < 3; ++peer) {
                farewells.push_back(transport.startReceive(int64_t(peer), 9, &words[peer], 8));
                farewells.push_back(transport.startSend(int64_t(peer), 9, &words[peer + 3], 8));
              }
              for (auto request : farewells)
                if (auto text = await(transport, request); !text.empty())
                  return text;
              for (const Open &open : all)
                if (open.from >= 0 && open.data != pattern(open.from * 3 + self, open.number, open.data.size()))
                  return fmt::format("message {} of rank {}: other bytes", open.number, open.from);
              return "";
            }));
}

// What cannot be started fails when tested: too many requests, a rank or tag that does not exist. cancelAll frees the
// requests.
TEST_P(TransportTest, refusesTheImpossible) {
  EXPECT_EQ("", runRanks(
                    GetParam(), 1,
                    [](Transport &transport) -> std::string {
                      uint64_t data[9];
                      for (auto [peer, tag] : {std::pair<int64_t, uint64_t>(1, 0), {-1, 0}, {0, maxTag + 1}})
                        if (auto text = await(transport, transport.startReceive(peer, tag, data, 8));
                            text.find("expected a rank below 1") == std::string::npos)
                          return "not refused: " + text;
                      for (int i = 0; i < 8; ++i)
                        if (transport.test(transport.startReceive(0, uint64_t(i), &data[i], 8)) != Progress::pending)
                          return "not pending";
                      auto text = await(transport, transport.startReceive(0, 8, &data[8], 8));
                      if (text.find("all 8 requests are open") == std::string::npos)
                        return "not refused: " + text;
                      transport.cancelAll();
                      data[0] = 7;
                      auto receive = transport.startReceive(0, 9, &data[1], 8);
                      auto send = transport.startSend(0, 9, &data[0], 8);
                      text = await(transport, receive) + await(transport, send);
                      return text.empty() && data[1] == 7 ? "" : "after cancelAll: " + text;
                    },
                    8));
}

// After cancelAll a rank leaves although receives and a large send are open.
TEST_P(TransportTest, givesUpOpenRequests) {
  EXPECT_EQ("", runRanks(GetParam(), 2, [](Transport &transport) -> std::string {
              std::vector<uint8_t> buffer(1 << 20), never(1 << 20);
              for (uint64_t tag = 0; tag < 10; ++tag)
                (void)transport.startReceive(1 - transport.rank(), tag, never.data(), never.size());
              auto send = transport.startSend(1 - transport.rank(), 77, buffer.data(), buffer.size());
              if (transport.test(send) == Progress::failed)
                return transport.failure().message();
              transport.cancelAll();
              return "";
            }));
}

// A rank whose connection breaks in a message is named, with what was asked of it, and the transport lives on. The
// receiver reads nothing before the sender is about to leave, so the message is never whole.
TEST(TlsTransportTest, deadPeerIsAFailure) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ("", runRanks(Kind::tlsProcesses, 2, [&](Transport &transport) -> std::string {
              std::vector<uint8_t> buffer(64 << 20);
              char leaving = 0;
              if (transport.rank() == 1) {
                (void)transport.startSend(0, 1, buffer.data(), buffer.size());
                _exit(write(ends[1], &leaving, 1) != 1); // without a farewell
              }
              if (read(ends[0], &leaving, 1) != 1)
                return "rank 1 says nothing";
              uint64_t word = 0;
              auto text = await(transport, transport.startReceive(1, 1, buffer.data(), buffer.size())),
                   later = await(transport, transport.startSend(1, 3, &word, 8));
              for (const std::string &said : {text, later})
                if (said.find("rank 1") == std::string::npos || said.find("rank 0") == std::string::npos)
                  return "the failure said: " + said;
              _exit(0); // rank 1 will not come to a meeting
            }));
  close(ends[0]);
  close(ends[1]);
}

// A large message whose sender is dead before it was fetched is a failed receive that names the sender, not a crash.
TEST(UcxTransportTest, deadSenderIsAFailure) {
  EXPECT_EQ("", runRanks(Kind::ucxProcesses, 2, [](Transport &transport) -> std::string {
              std::vector<uint8_t> buffer(4 << 20);
              int64_t sender = getpid();
              if (transport.rank() == 1) {
                auto large = transport.startSend(0, 1, buffer.data(), buffer.size());
                if (auto text = await(transport, transport.startSend(0, 2, &sender, sizeof sender)); !text.empty())
                  return text;
                (void)transport.test(large);
                _exit(0); // the data is still here
              }
              if (auto text = await(transport, transport.startReceive(1, 2, &sender, sizeof sender)); !text.empty())
                return text;
              auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
              while (kill(pid_t(sender), 0) == 0 && std::chrono::steady_clock::now() < limit)
                std::this_thread::yield();
              auto text = await(transport, transport.startReceive(1, 1, buffer.data(), buffer.size()));
              if (text.find("receive from rank 1") == std::string::npos ||
                  text.find("may be gone") == std::string::npos)
                return "the failure said: " + text;
              _exit(0); // rank 1 will not come to a meeting
            }));
}

} // namespace
