// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/DryRun.h"

#include "runtime/launch/link/LaunchMessage.h"
#include "runtime/session/report/JsonLine.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

namespace dg::session {

using Clock = std::chrono::steady_clock;

static constexpr uint64_t pingTag = 0xfe0000000000u;
static constexpr int rounds = 10;

namespace {

/// What a rank tells about itself and its way to the ranks above it. Trivial, so that it travels as bytes.
struct RankLine {
  char host[256] = "", hostId[512] = "", address[64] = "", device[32] = "";
};

} // namespace

static Status await(Transport &transport, Transport::Request request, Deadline deadline, int64_t peer) {
  Progress state;
  while ((state = transport.test(request)) == Progress::pending) {
    if (Clock::now() > deadline)
      return Status::error(ErrorKind::lost,
                           "rank {} gets no answer from rank {}: the hosts reach each other at the rendezvous, but not "
                           "over the port that the rank has opened; look for a firewall",
                           transport.rank(), peer);
    std::this_thread::yield();
  }
  return state == Progress::done ? Status::ok() : transport.failure();
}

/// One way in microseconds, the best of several rounds; counts on the lower rank.
static Status pingPong(Transport &transport, int64_t peer, Deadline deadline, double &microseconds) {
  bool isLower = transport.rank() < peer;
  for (int round = 0; round < rounds; ++round) {
    uint64_t word = 0;
    auto begin = Clock::now();
    for (bool isSending : {isLower, !isLower}) {
      auto request = isSending ? transport.startSend(peer, pingTag, &word, sizeof word)
                               : transport.startReceive(peer, pingTag, &word, sizeof word);
      DG_RETURN_IF_ERROR(await(transport, request, deadline, peer));
    }
    double took = std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / 2;
    microseconds = round == 0 ? took : std::min(microseconds, took);
  }
  return Status::ok();
}

/// As much as fits in front of a zero.
static void copyText(char *to, size_t bytes, const std::string &text) { to[text.copy(to, bytes - 1)] = '\0'; }

static void print(const RankLine &from, const RankLine &to, int64_t low, int64_t high, double microseconds,
                  const RankPlacement &place, bool isJson) {
  const char *network = place.runId.empty() ? "tcp" : "tls";
  bool isShared = std::strcmp(from.hostId, to.hostId) == 0;
  if (isJson) {
    JsonLine line("link");
    line.add("from", low).add("to", high).add("transport", isShared ? "shared memory" : network);
    line.add("from_host", std::string_view(from.host)).add("to_host", std::string_view(to.host));
    if (!isShared)
      line.add("from_address", std::string_view(from.address))
          .add("to_address", std::string_view(to.address))
          .add("why", std::string_view(place.linkReason));
    fmt::print("{}", std::move(line.add("latency_us", microseconds)).finish());
    return;
  }
  std::string way = isShared ? fmt::format("shared memory on {}", from.host)
                             : fmt::format("{}, {} {} ({}) to {} {} ({})", network, from.host, from.address,
                                           from.device, to.host, to.address, to.device);
  fmt::print("rank {} - rank {}: {}, {:.1f} us\n", low, high, way, microseconds);
}

Status runDry(RankContext &context, Transport *transport, std::chrono::milliseconds timeout, bool isJson) {
  const RankPlacement &place = context.placement();
  RankLine mine;
  copyText(mine.host, sizeof mine.host, place.hostName);
  copyText(mine.hostId, sizeof mine.hostId, place.hostId);
  copyText(mine.address, sizeof mine.address, place.networkAddress);
  copyText(mine.device, sizeof mine.device, place.networkDevice);
  std::vector<double> latencies(size_t(context.numRanks()));
  // Every rank meets its pairs in the same order, so that nobody waits for one who waits.
  for (int64_t low = 0; low < context.numRanks(); ++low)
    for (int64_t high = low + 1; high < context.numRanks(); ++high)
      if (context.rank() == low || context.rank() == high) {
        int64_t peer = context.rank() == low ? high : low;
        DG_RETURN_IF_ERROR(pingPong(*transport, peer, deadlineIn(timeout), latencies[size_t(peer)]));
      }
  std::string bytes(reinterpret_cast<const char *>(&mine), sizeof mine);
  bytes.append(reinterpret_cast<const char *>(latencies.data()), latencies.size() * sizeof(double));
  auto all = context.allGather(bytes, deadlineIn(timeout));
  if (!all)
    return all.status();
  if (context.rank() != 0)
    return Status::ok();
  auto lineOf = [&](int64_t rank) {
    RankLine line;
    std::memcpy(&line, (*all)[size_t(rank)].data(), sizeof line);
    return line;
  };
  for (int64_t low = 0; low < context.numRanks(); ++low)
    for (int64_t high = low + 1; high < context.numRanks(); ++high) {
      double microseconds;
      std::memcpy(&microseconds, (*all)[size_t(low)].data() + sizeof(RankLine) + size_t(high) * sizeof(double),
                  sizeof microseconds);
      print(lineOf(low), lineOf(high), low, high, microseconds, place, isJson);
    }
  if (!isJson && place.spansHosts)
    fmt::print("between hosts: {}, because {}\n",
               place.runId.empty() ? "UCX over TCP in the clear, open to whoever reaches the hosts"
                                   : "TLS 1.3 with keys that follow from the job's secret",
               place.linkReason);
  if (!isJson)
    fmt::print("{} rank{}: every pair can talk; nothing was run\n", context.numRanks(),
               context.numRanks() == 1 ? "" : "s");
  std::fflush(stdout);
  return Status::ok();
}

} // namespace dg::session
