// SPDX-License-Identifier: Apache-2.0
// How long an all-reduce of f32 takes between the processes of one host, for each way in which they can be joined:
//
//   collectives_bench mapped|messages|tcp|tls [RANKS [BYTES...]]
//
// Prints a JSON object a line: bytes, median_us and best_us of one all-reduce, over rounds of many.
#include "runtime/launch/ranks/LocalLauncher.h"
#include "runtime/support/SpinWait.h"
#include "runtime/transport/HostMemory.h"
#include "runtime/transport/TlsTransport.h"
#include "runtime/transport/UcxTransport.h"
#include "runtime/transport/collectives/Collectives.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace dg {
namespace {

using Clock = std::chrono::steady_clock;

Status runOnce(Communication &communication, void *buffer) {
  communication.start(buffer, buffer);
  for (uint32_t spins = 0;; ++spins) {
    Progress progress = communication.poll();
    if (progress == Progress::done)
      return Status::ok();
    if (progress == Progress::failed)
      return communication.failure();
    // As the executor waits, but longer before it gives the core away: a busy machine is slow to give it back.
    if (spins < 10'000)
      pauseCore();
    else
      std::this_thread::yield();
    if (spins > 100'000'000)
      return Status::error(ErrorKind::runFailed, "waits for rank {}", communication.waitsFor());
  }
}

Status measure(Transport &transport, const std::vector<size_t> &sizes) {
  Group group;
  for (int64_t rank = 0; rank < transport.numRanks(); ++rank)
    group.ranks.push_back(rank);
  group.self = size_t(transport.rank());
  std::vector<float> own;
  float *buffer = nullptr;
  if (HostMemory *memory = transport.hostMemory()) {
    buffer = reinterpret_cast<float *>(memory->data());
  } else {
    own.resize(*std::max_element(sizes.begin(), sizes.end()) / sizeof(float));
    buffer = own.data();
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    size_t bytes = sizes[i];
    std::memset(buffer, 0, bytes);
    auto communication = makeAllReduce(transport, group, uint64_t(i + 1) << 16, plan::DType::f32, bytes / 4);
    size_t perRound = std::clamp<size_t>((size_t(1) << 20) / bytes, 1, 200), numRounds = bytes > 1 << 22 ? 30 : 200;
    std::vector<double> times;
    for (size_t round = 0; round < numRounds + 5; ++round) {
      auto begin = Clock::now();
      for (size_t k = 0; k < perRound; ++k)
        DG_RETURN_IF_ERROR(runOnce(*communication, buffer));
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / double(perRound));
    }
    times.erase(times.begin(), times.begin() + 5);
    std::sort(times.begin(), times.end());
    if (transport.rank() == 0) {
      std::printf("{\"bytes\": %zu, \"median_us\": %.3f, \"best_us\": %.3f}\n", bytes, times[times.size() / 2],
                  times[0]);
      std::fflush(stdout);
    }
  }
  return Status::ok();
}

} // namespace
} // namespace dg

int main(int argc, char **argv) {
  std::string way = argc > 1 ? argv[1] : "";
  if (way != "mapped" && way != "messages" && way != "tcp" && way != "tls") {
    std::fprintf(stderr, "usage: collectives_bench mapped|messages|tcp|tls [RANKS [BYTES...]]\n");
    return 2;
  }
  std::vector<size_t> sizes;
  for (int i = 3; i < argc; ++i)
    sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty())
    sizes = {1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864};
  dg::LaunchOptions options;
  options.tool = "collectives_bench";
  options.numRanks = argc > 2 ? std::atoi(argv[2]) : 2;
  return dg::launchLocal(options, [&](dg::RankContext &context) {
    auto deadline = dg::deadlineIn(std::chrono::minutes(1));
    dg::UcxOptions ucx;
    ucx.sharedBytes = way == "mapped" ? *std::max_element(sizes.begin(), sizes.end()) : 0;
    ucx.spansHosts = way == "tcp";
    ucx.hostId = way == "tcp" || way == "tls" ? std::to_string(context.rank()) : "";
    dg::AddressExchange exchange = [&](const std::string &mine) { return context.allGather(mine, deadline); };
    auto transport = dg::makeUcxTransport(context.rank(), context.numRanks(), exchange, ucx);
    if (transport && way == "tls") {
      dg::TlsOptions tls;
      tls.hostId = ucx.hostId;
      tls.address = "127.0.0.1";
      tls.keys.resize(size_t(context.numRanks())); // as good as any here
      transport = dg::makeTlsTransport(std::move(*transport), exchange, std::move(tls));
    }
    dg::Status status = transport ? dg::measure(**transport, sizes) : transport.status();
    if (status)
      status = context.barrier(dg::deadlineIn(std::chrono::minutes(1)));
    context.reportFailure(status);
    return status.exitCode();
  });
}
