// SPDX-License-Identifier: Apache-2.0
#include "tools/host/HostProbe.h"

#include "runtime/support/HostCores.h"
#include "runtime/support/PeakRate.h"
#include "runtime/support/SpinWait.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <numeric>
#include <thread>
#include <vector>

namespace dg::tools {

namespace {

constexpr size_t largeBytes = size_t(64) << 20, messageBytes = size_t(4) << 20;
constexpr int numRounds = 5, numTurns = 2000;

/// The best of several runs, in seconds.
template <typename Work> double bestSeconds(Work work) {
  double best = 1e300;
  for (int round = 0; round < numRounds; ++round) {
    auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

double medianOf(std::vector<uint64_t> &values) {
  auto middle = values.begin() + ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return double(*middle);
}

double measureMemory() {
  std::vector<char> from(largeBytes, 1), to(largeBytes, 2);
  // Through a pointer that the compiler cannot see through: it would leave the work out.
  void *(*volatile copy)(void *, const void *, size_t) = std::memcpy;
  return 2 * double(largeBytes) / bestSeconds([&] { copy(to.data(), from.data(), largeBytes); });
}

/// Spins, and gives up the core now and then where both threads have only one.
void waitFor(const std::atomic<int> &word, int value) {
  for (int spins = 1; word.load(std::memory_order_acquire) != value; ++spins)
    if (spins % 20000 == 0)
      std::this_thread::yield();
}

/// A word goes back and forth between two threads; half a turn is the latency.
double measureMemoryLatencyUs() {
  std::atomic<int> word{0};
  std::thread other([&] {
    for (int turn = 0; turn < numRounds * numTurns; ++turn) {
      waitFor(word, 2 * turn + 1);
      word.store(2 * turn + 2, std::memory_order_release);
    }
  });
  int turn = 0;
  double seconds = bestSeconds([&] {
    for (int end = turn + numTurns; turn < end; ++turn) {
      word.store(2 * turn + 1, std::memory_order_release);
      waitFor(word, 2 * turn + 2);
    }
  });
  other.join();
  return seconds / numTurns / 2 * 1e6;
}

/// The rate at which one core takes what another has just written, as ranks of a host do: one thread fills a buffer,
/// the other copies it. To fill it takes longer than for oneself alone, because the other has it; that belongs to it
/// too.
double measureHandOver(const std::vector<int> &cores) {
  constexpr size_t bytes = size_t(1) << 18;
  constexpr int transfers = 400;
  std::vector<char> from(bytes, 1), shared(bytes, 2), to(bytes, 3);
  void *(*volatile copy)(void *, const void *, size_t) = std::memcpy;
  std::vector<uint64_t> aloneNs, fillNs, takeNs;
  auto timed = [&](std::vector<uint64_t> &times, std::vector<char> &target, const std::vector<char> &source) {
    uint64_t start = nowNs();
    copy(target.data(), source.data(), bytes);
    times.push_back(nowNs() - start);
  };
  std::atomic<int> word{0};
  std::thread writer([&] {
    stayOnCore(cores.front());
    for (int turn = 0; turn < transfers; ++turn)
      timed(aloneNs, shared, from);
    for (int turn = 0; turn < transfers; ++turn) {
      timed(fillNs, shared, from);
      word.store(2 * turn + 1, std::memory_order_release);
      waitFor(word, 2 * turn + 2);
    }
  });
  std::thread reader([&] {
    stayOnCore(cores.back());
    for (int turn = 0; turn < transfers; ++turn) {
      waitFor(word, 2 * turn + 1);
      timed(takeNs, to, shared);
      word.store(2 * turn + 2, std::memory_order_release);
    }
  });
  writer.join();
  reader.join();
  const double surplusNs = std::max(0.0, medianOf(fillNs) - medianOf(aloneNs));
  return double(bytes) / (medianOf(takeNs) + surplusNs) * 1e9;
}

/// What it takes until a rank goes on that has waited for another on the same core: it spins before it gives the core
/// away, as ranks do, and the other does so too. Two threads on one core hand a word back and forth.
double measureTurnUs(int core) {
  constexpr int turns = 200;
  std::atomic<int> word{0};
  auto play = [&](int first) {
    stayOnCore(core);
    for (int turn = 0; turn < turns; ++turn) {
      for (uint32_t spins = 1; word.load(std::memory_order_acquire) != 2 * turn + first; ++spins) {
        if (spins < spinsOnSharedCore)
          pauseCore();
        else
          std::this_thread::yield();
      }
      word.store(2 * turn + first + 1, std::memory_order_release);
    }
  };
  return bestSeconds([&] {
           word = 0;
           std::thread even(play, 0), odd(play, 1);
           even.join();
           odd.join();
         }) /
         (2 * turns) * 1e6;
}

/// How long the system lets a rank compute while another waits for its core: two threads compute on one core, and see
/// by the clock when they did not. The median of what they miss.
double measureSliceUs(int core) {
  constexpr uint64_t runNs = 200'000'000, leastNs = 100'000; // what is shorter was an interrupt
  std::vector<uint64_t> missed[2];
  auto compute = [&](int self) {
    stayOnCore(core);
    const uint64_t endNs = nowNs() + runNs;
    for (uint64_t before = nowNs(), now = before; now < endNs; before = now) {
      now = nowNs();
      if (now - before > leastNs)
        missed[self].push_back(now - before);
    }
  };
  std::thread first(compute, 0), second(compute, 1);
  first.join();
  second.join();
  missed[0].insert(missed[0].end(), missed[1].begin(), missed[1].end());
  if (missed[0].empty())
    return 0;
  return medianOf(missed[0]) / 1000;
}

/// Two ends of a TCP connection to this host, closed with the object.
class Connection {
public:
  Connection() {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto *plain = reinterpret_cast<sockaddr *>(&address);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    bool isListening = bind(listener, plain, size) == 0 && listen(listener, 1) == 0 &&
                       getsockname(listener, plain, &size) == 0 && connect(ends[0], plain, size) == 0;
    ends[1] = isListening ? accept(listener, nullptr, nullptr) : -1;
    close(listener);
    for (int end : ends) {
      int on = 1;
      timeval deadline{10, 0};
      setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &deadline, sizeof deadline);
      setsockopt(end, SOL_SOCKET, SO_SNDTIMEO, &deadline, sizeof deadline);
    }
  }
  ~Connection() {
    for (int end : ends)
      close(end);
  }
  Connection(const Connection &) = delete;
  Connection &operator=(const Connection &) = delete;
  bool isOpen() const { return ends[1] >= 0; }
  bool sendAll(int end, const char *bytes, size_t size) const {
    for (ssize_t done = 1; size > 0 && done > 0; bytes += done, size -= size_t(done))
      if (done = send(ends[end], bytes, size, MSG_NOSIGNAL); done <= 0)
        return false;
    return true;
  }
  bool receiveAll(int end, char *bytes, size_t size) const {
    for (ssize_t done = 1; size > 0 && done > 0; bytes += done, size -= size_t(done))
      if (done = recv(ends[end], bytes, size, 0); done <= 0)
        return false;
    return true;
  }

private:
  int ends[2] = {-1, -1};
};

Result<partitioner::Link> measureTcp() {
  Connection connection;
  if (!connection.isOpen())
    return Status::error(ErrorKind::runFailed,
                         "no TCP connection to this host can be made ({}): allow it, or "
                         "write the cluster file by hand",
                         std::strerror(errno));
  std::vector<char> sent(messageBytes, 1), received(messageBytes), echoed(messageBytes);
  std::atomic<bool> isGood{true};
  auto bounce = [&](size_t size, int turns) {
    std::thread other([&] {
      for (int turn = 0; turn < turns && isGood; ++turn)
        isGood =
            isGood && connection.receiveAll(1, received.data(), size) && connection.sendAll(1, received.data(), size);
    });
    for (int turn = 0; turn < turns && isGood; ++turn)
      isGood = isGood && connection.sendAll(0, sent.data(), size) && connection.receiveAll(0, echoed.data(), size);
    other.join();
  };
  double latencyS = bestSeconds([&] { bounce(1, 200); }) / 400;
  double messageS = bestSeconds([&] { bounce(messageBytes, 2); }) / 4;
  if (!isGood)
    return Status::error(ErrorKind::runFailed, "the TCP connection of this host to itself broke off ({}); try again",
                         std::strerror(errno));
  return partitioner::Link{double(messageBytes) / std::max(messageS - latencyS, 1e-9), latencyS * 1e6};
}

/// What it takes to hand a piece of work to another function that the compiler cannot see: the least that a task costs.
double measureLaunchUs() {
  std::atomic<uint64_t> count{0};
  void (*volatile call)(std::atomic<uint64_t> &) = [](std::atomic<uint64_t> &c) { c.fetch_add(1); };
  constexpr int calls = 100000;
  return bestSeconds([&] {
           for (int i = 0; i < calls; ++i)
             call(count);
         }) /
         calls * 1e6;
}

} // namespace

/// Share of the cores that others had while all of them were asked for: 0 on a host without other work.
static double measureOtherWork(const std::vector<int> &cores) {
  constexpr uint64_t runNs = 50'000'000;
  std::vector<uint64_t> ownNs(cores.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cores.size(); ++i)
    threads.emplace_back([&, i] {
      stayOnCore(cores[i]);
      const uint64_t endNs = nowNs() + runNs;
      while (nowNs() < endNs)
        continue;
      timespec own{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
      ownNs[i] = uint64_t(own.tv_sec) * 1'000'000'000 + uint64_t(own.tv_nsec);
    });
  for (std::thread &thread : threads)
    thread.join();
  const double allNs = double(std::accumulate(ownNs.begin(), ownNs.end(), uint64_t(0)));
  return std::max(0.0, 1 - allNs / double(runNs * cores.size()));
}

/// To three digits: what follows them differs from one measurement to the next.
static double rounded(double value) {
  if (!(value > 0))
    return value;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

static std::string timeOfDay() {
  const std::time_t now = std::time(nullptr);
  tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

Result<MeasuredHost> probeHost() {
  constexpr double busyShare = 0.1;
  MeasuredHost host;
  partitioner::Cluster &cluster = host.cluster;
  char name[256] = "host";
  gethostname(name, sizeof name - 1);
  cluster.name = name;
  const std::vector<int> cores = usableCores();
  host.isBusy = measureOtherWork(cores) > busyShare;
  cluster.devicesPerNode = cluster.coresPerNode = uint32_t(cores.size());
  cluster.turnUs = rounded(measureTurnUs(cores.front()));
  cluster.sliceUs = rounded(measureSliceUs(cores.front()));
  partitioner::Device &device = cluster.device;
  device.name = "core";
  device.flopsPerSecond[plan::DType::f32] = rounded(measurePeakFlops());
  device.flopsPerSecond[plan::DType::f64] = device.flopsPerSecond[plan::DType::f32] / 2;
  device.memoryBytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE)) / cluster.devicesPerNode;
  device.memoryBytesPerSecond = rounded(measureMemory());
  device.efficiency = 0.9;
  device.launchUs = rounded(measureLaunchUs());
  cluster.intraNode = {rounded(measureHandOver(cores)), rounded(measureMemoryLatencyUs())};
  Result<partitioner::Link> tcp = measureTcp();
  if (!tcp)
    return tcp.status();
  cluster.interNode = {rounded(tcp->bytesPerSecond), rounded(tcp->latencyUs)};
  host.when = timeOfDay();
  return host;
}

} // namespace dg::tools
