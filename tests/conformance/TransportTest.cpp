// SPDX-License-Identifier: Apache-2.0
// Proves that every transport keeps the promises of Transport.h: order, sizes, many at once, failures that are told and
// not fatal.
#include "tests/conformance/Ranks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstring>
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
