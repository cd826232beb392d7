// SPDX-License-Identifier: Apache-2.0
// Threads and processes for the conformance suite.
#include "tests/conformance/Ranks.h"

#include "runtime/launch/ranks/LocalLauncher.h"
#include "runtime/transport/HostMemory.h"
#include "runtime/transport/UcxTransport.h"
#include "tests/unit/transport/InProcessTransport.h"

#include <barrier>
#include <chrono>
#include <mutex>
#include <thread>

namespace dg::test {
namespace {

constexpr size_t sharedBytes = size_t(128) << 20;

/// The host memory of the calling rank; handed out from one end to the other, and again from the start when all of it
/// was given back.
struct Pool {
  HostMemory *memory = nullptr;
  size_t used = 0, numLive = 0;
};
thread_local Pool pool;

std::string runBody(const Body &body, Transport &transport) {
  pool = {.memory = transport.hostMemory()};
  std::string text = body(transport);
  pool = {};
  return text;
}

std::string runThreads(Kind kind, int64_t numRanks, const Body &body, uint32_t maxRequests) {
  std::vector<std::unique_ptr<Transport>> inProcess;
  if (kind != Kind::ucxThreads)
    inProcess = makeInProcessTransports(numRanks, maxRequests, kind == Kind::mappedThreads ? sharedBytes : 0);
  std::barrier meeting(numRanks);
  std::vector<std::string> slots(static_cast<size_t>(numRanks)), complaints(static_cast<size_t>(numRanks));
  auto rankMain = [&](size_t rank) {
    AddressExchange exchange = [&](const std::string &mine) -> Result<std::vector<std::string>> {
      slots[rank] = mine;
      meeting.arrive_and_wait();
      std::vector<std::string> all = slots;
      meeting.arrive_and_wait();
      return all;
    };
    std::unique_ptr<Transport> transport;
    if (kind != Kind::ucxThreads) {
      transport = std::move(inProcess[rank]);
    } else {
      UcxOptions options;
      options.maxRequests = maxRequests;
      auto made = makeUcxTransport(int64_t(rank), numRanks, exchange, options);
      if (!made) {
        complaints[rank] = made.status().message();
        std::abort(); // the others would wait for ever
      }
      transport = std::move(*made);
    }
    complaints[rank] = runBody(body, *transport);
    meeting.arrive_and_wait();
  };
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < size_t(numRanks); ++rank)
    threads.emplace_back(rankMain, rank);
  for (std::thread &thread : threads)
    thread.join();
  std::string all;
  for (size_t rank = 0; rank < complaints.size(); ++rank)
    if (!complaints[rank].empty())
      all += fmt::format("rank {}: {}\n", rank, complaints[rank]);
  return all;
}

std::string runProcesses(Kind kind, int64_t numRanks, const Body &body, uint32_t maxRequests) {
  std::string complaint;
  LaunchOptions options;
  options.tool = "conformance";
  options.numRanks = numRanks;
  options.onFailure = [&](const RankFailure &failure) { complaint = failure.text; };
  int code = launchLocal(options, [&](RankContext &context) {
    auto deadline = deadlineIn(std::chrono::minutes(1));
    UcxOptions ucx;
    ucx.maxRequests = maxRequests;
    ucx.spansHosts = kind == Kind::tcpProcesses || kind == Kind::twoHosts;
    if (kind == Kind::mappedProcesses || kind == Kind::twoHosts)
      ucx.sharedBytes = sharedBytes;
    if (kind == Kind::tcpProcesses)
      ucx.hostId = std::to_string(context.rank());
    if (kind == Kind::twoHosts)
      ucx.hostId = context.rank() < (numRanks + 1) / 2 ? "first" : "second";
    auto made = makeUcxTransport(
        context.rank(), numRanks, [&](const std::string &mine) { return context.allGather(mine, deadline); }, ucx);
    Status status = made.status();
    if (made) {
      if (std::string text = runBody(body, **made); !text.empty())
        status = Status::error(ErrorKind::runFailed, "{}", text);
    }
    context.reportFailure(status);
    if (status.isOk())
      status = context.barrier(deadlineIn(std::chrono::minutes(1)));
    return status.exitCode();
  });
  return code == 0 ? "" : fmt::format("exit code {}: {}", code, complaint);
}

} // namespace

const char *nameOf(Kind kind) {
  switch (kind) {
  case Kind::inProcess:
    return "inProcess";
  case Kind::mappedThreads:
    return "mappedThreads";
  case Kind::ucxThreads:
    return "ucxThreads";
  case Kind::ucxProcesses:
    return "ucxProcesses";
  case Kind::mappedProcesses:
    return "mappedProcesses";
  case Kind::tcpProcesses:
    return "tcpProcesses";
  case Kind::twoHosts:
    return "twoHosts";
  }
  return "?";
}

std::string runRanks(Kind kind, int64_t numRanks, const Body &body, uint32_t maxRequests) {
  bool areThreads = kind == Kind::inProcess || kind == Kind::mappedThreads || kind == Kind::ucxThreads;
  return areThreads ? runThreads(kind, numRanks, body, maxRequests) : runProcesses(kind, numRanks, body, maxRequests);
}

void *takeMemory(size_t bytes) {
  if (!pool.memory)
    return ::operator new(bytes);
  if (pool.numLive++ == 0)
    pool.used = 0;
  size_t begin = pool.used;
  pool.used = (begin + bytes + 63) / 64 * 64;
  if (pool.used > pool.memory->bytes())
    throw std::bad_alloc();
  return pool.memory->data() + begin;
}

void giveMemoryBack(void *pointer) {
  if (pool.memory)
    --pool.numLive;
  else
    ::operator delete(pointer);
}

std::string await(Transport &transport, Transport::Request request) {
  auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (true) {
    switch (transport.test(request)) {
    case Progress::done:
      return "";
    case Progress::failed:
      return transport.failure().message();
    case Progress::pending:
      break;
    }
    if (std::chrono::steady_clock::now() > limit)
      return "nothing for a minute";
    std::this_thread::yield();
  }
}

} // namespace dg::test
