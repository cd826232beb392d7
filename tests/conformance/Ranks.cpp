// SPDX-License-Identifier: Apache-2.0
// Threads and processes for the conformance suite.
#include "tests/conformance/Ranks.h"

#include "runtime/launch/LocalLauncher.h"
#include "runtime/transport/InProcessTransport.h"
#include "runtime/transport/UcxTransport.h"

#include <barrier>
#include <chrono>
#include <mutex>
#include <thread>

namespace dg::test {
namespace {

std::string runThreads(Kind kind, int64_t numRanks, const Body &body, uint32_t maxRequests) {
  std::vector<std::unique_ptr<Transport>> inProcess;
  if (kind == Kind::inProcess)
    inProcess = makeInProcessTransports(numRanks, maxRequests);
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
    if (kind == Kind::inProcess) {
      transport = std::move(inProcess[rank]);
    } else {
      auto made = makeUcxTransport(int64_t(rank), numRanks, exchange, {.maxRequests = maxRequests});
      if (!made) {
        complaints[rank] = made.status().message();
        std::abort(); // the others would wait for ever
      }
      transport = std::move(*made);
    }
    complaints[rank] = body(*transport);
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

std::string runProcesses(int64_t numRanks, const Body &body, uint32_t maxRequests) {
  std::string complaint;
  LaunchOptions options;
  options.tool = "conformance";
  options.numRanks = numRanks;
  options.onFailure = [&](const RankFailure &failure) { complaint = failure.text; };
  int code = launchLocal(options, [&](RankContext &context) {
    auto deadline = deadlineIn(std::chrono::minutes(1));
    auto made = makeUcxTransport(context.rank(), numRanks,
                                 [&](const std::string &mine) { return context.allGather(mine, deadline); },
                                 {.maxRequests = maxRequests});
    Status status = made.status();
    if (made) {
      if (std::string text = body(**made); !text.empty())
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
  case Kind::ucxThreads:
    return "ucxThreads";
  case Kind::ucxProcesses:
    return "ucxProcesses";
  }
  return "?";
}

std::string runRanks(Kind kind, int64_t numRanks, const Body &body, uint32_t maxRequests) {
  return kind == Kind::ucxProcesses ? runProcesses(numRanks, body, maxRequests)
                                    : runThreads(kind, numRanks, body, maxRequests);
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
