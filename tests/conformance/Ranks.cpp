// SPDX-License-Identifier: Apache-2.0
// Threads and processes for the conformance suite.
#include "tests/conformance/Ranks.h"

#include "runtime/launch/ranks/LocalLauncher.h"
#include "runtime/transport/HostMemory.h"
#include "runtime/transport/TlsTransport.h"
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

/// A key for each pair; not the launcher's way to them, but as different.
std::vector<PairKey> testKeys(int64_t rank, int64_t numRanks) {
  std::vector<PairKey> keys(static_cast<size_t>(numRanks));
  for (int64_t peer = 0; peer < numRanks; ++peer) {
    keys[size_t(peer)].fill(0x5a);
    keys[size_t(peer)][0] = uint8_t(std::min(rank, peer));
    keys[size_t(peer)][1] = uint8_t(std::max(rank, peer));
  }
  return keys;
}

/// TLS to the ranks with another id, over loopback.
Result<std::unique_ptr<Transport>> withTls(Result<std::unique_ptr<Transport>> local, const AddressExchange &exchange,
                                           const UcxOptions &ucx) {
  if (!local)
    return local;
  TlsOptions options;
  options.maxRequests = ucx.maxRequests;
  options.hostId = ucx.hostId;
  options.address = "127.0.0.1";
  options.keys = testKeys((*local)->rank(), (*local)->numRanks());
  return makeTlsTransport(std::move(*local), exchange, std::move(options));
}

std::string runThreads(Kind kind, int64_t numRanks, const Body &body, uint32_t maxRequests) {
  std::vector<std::unique_ptr<Transport>> inProcess;
  const bool areInProcess = kind == Kind::inProcess || kind == Kind::mappedThreads;
  if (areInProcess)
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
    if (areInProcess) {
      transport = std::move(inProcess[rank]);
    } else {
      UcxOptions options;
      options.maxRequests = maxRequests;
      if (kind == Kind::tlsThreads)
        options.hostId = std::to_string(rank);
      auto made = makeUcxTransport(int64_t(rank), numRanks, exchange, options);
      if (kind == Kind::tlsThreads)
        made = withTls(std::move(made), exchange, options);
      if (!made) {
        fmt::print(stderr, "{}\n", made.status().message());
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
  options.describeEvent = [&](const LaunchEvent &event) {
    complaint = event.text;
    return std::string();
  };
  int code = launchLocal(options, [&](RankContext &context) {
    auto deadline = deadlineIn(std::chrono::minutes(1));
    UcxOptions ucx;
    ucx.maxRequests = maxRequests;
    ucx.spansHosts = kind == Kind::tcpProcesses || kind == Kind::twoHosts;
    const bool isTls = kind == Kind::tlsProcesses || kind == Kind::secureHosts;
    if (kind == Kind::mappedProcesses || kind == Kind::twoHosts || kind == Kind::secureHosts)
      ucx.sharedBytes = sharedBytes;
    if (kind == Kind::tcpProcesses || kind == Kind::tlsProcesses)
      ucx.hostId = std::to_string(context.rank());
    if (kind == Kind::twoHosts || kind == Kind::secureHosts)
      ucx.hostId = context.rank() < (numRanks + 1) / 2 ? "first" : "second";
    AddressExchange exchange = [&](const std::string &mine) { return context.allGather(mine, deadline); };
    auto made = makeUcxTransport(context.rank(), numRanks, exchange, ucx);
    if (isTls)
      made = withTls(std::move(made), exchange, ucx);
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
  case Kind::tlsThreads:
    return "tlsThreads";
  case Kind::tlsProcesses:
    return "tlsProcesses";
  case Kind::secureHosts:
    return "secureHosts";
  }
  return "?";
}

std::string runRanks(Kind kind, int64_t numRanks, const Body &body, uint32_t maxRequests) {
  bool areThreads =
      kind == Kind::inProcess || kind == Kind::mappedThreads || kind == Kind::ucxThreads || kind == Kind::tlsThreads;
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
