// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/device/ShyDevice.h"

#include "runtime/device/LaunchedDevice.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <sys/mman.h>
#include <thread>

namespace dg::test {

namespace {

/// How long work lies before it is begun, in turn.
constexpr std::chrono::microseconds delays[] = {std::chrono::microseconds(0), std::chrono::microseconds(20),
                                                std::chrono::microseconds(100), std::chrono::microseconds(5)};
/// How often poll() says pending after the work is complete.
constexpr uint32_t latePolls = 3;

/// Says what a user of the device did wrong, and ends the process: nothing else would be noticed for sure.
void require(bool condition, const char *what) {
  if (condition)
    return;
  std::fprintf(stderr, "shy device: %s\n", what);
  std::abort();
}

/// Nodes whose tables point into the second mapping.
struct ShySection final : Section {
  std::vector<Node> nodes;
  std::vector<std::vector<void *>> tables;
};

class ShyDevice final : public LaunchedDevice {
public:
  explicit ShyDevice(const KernelLibrary &library) : library(library) {}
  ~ShyDevice() override {
    stop();
    if (real) {
      munmap(real, size);
      munmap(base, size);
    }
  }

  Status reserve(uint64_t bytes, std::span<std::byte> mapped) override {
    hostBase = mapped.data(); // staging memory too
    size = std::max<uint64_t>(bytes, 1);
    // A shared mapping of old size 0 is mapped a second time. No file has these bytes: limits on files do not count.
    void *shut = mmap(nullptr, size, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *open = shut == MAP_FAILED ? shut : mremap(shut, 0, size, MREMAP_MAYMOVE);
    if (open == MAP_FAILED || mprotect(open, size, PROT_READ | PROT_WRITE) != 0)
      return Status::error(ErrorKind::runFailed, "no memory for the shy device: {}", std::strerror(errno));
    real = static_cast<std::byte *>(open);
    base = static_cast<std::byte *>(shut);
    return Status::ok();
  }

  Status registerStaging(std::span<std::byte> memory) override {
    staging.push_back(memory);
    return Status::ok();
  }

  Status setUp(const DeviceOptions &options, StepContext &context) override {
    DG_RETURN_IF_ERROR(LaunchedDevice::setUp(options, context));
    worker = std::thread([this] { work(); });
    return Status::ok();
  }

  bool findKernel(const std::string &symbol, Node &node) override {
    node.kernel = library.find(symbol);
    node.tiles = library.tilesOf(symbol).value_or(0);
    return node.kernel && node.tiles > 0;
  }

  void stop() override {
    if (!worker.joinable())
      return;
    {
      std::lock_guard lock(mutex);
      isStopping = true;
    }
    changed.notify_all();
    worker.join();
  }

protected:
  Result<std::unique_ptr<Section>> makeSection(std::span<const Node> nodes) override {
    auto section = std::make_unique<ShySection>();
    for (const Node &node : nodes) {
      std::vector<void *> table;
      for (size_t i = 0; i < size_t(node.period) * node.numBuffers; ++i)
        table.push_back(realAddress(node.buffers[i]));
      section->nodes.push_back(node);
      section->tables.push_back(std::move(table));
    }
    for (size_t i = 0; i < section->nodes.size(); ++i)
      section->nodes[i].buffers = section->tables[i].data();
    return std::unique_ptr<Section>(std::move(section));
  }

  void launch(Section &section, uint32_t index, const dg_scalars &scalars) override {
    {
      std::lock_guard lock(mutex);
      queue.push_back({static_cast<ShySection *>(&section), index, scalars});
    }
    ++numLaunched;
    pollsSinceDone = 0;
    changed.notify_all();
  }

  Progress poll() override {
    if (numDone.load(std::memory_order_acquire) != numLaunched)
      return Progress::pending;
    return pollsSinceDone++ < latePolls ? Progress::pending : Progress::done;
  }
  Status cause() const override { return Status::ok(); }

  Status copyToHost(void *to, const std::byte *from, size_t bytes) const override {
    requireQuiet();
    std::memcpy(to, realAddress(const_cast<std::byte *>(from)), bytes);
    return Status::ok();
  }
  Status copyFromHost(std::byte *to, const void *from, size_t bytes) override {
    requireQuiet();
    std::memcpy(realAddress(to), from, bytes);
    return Status::ok();
  }

private:
  struct Launch {
    ShySection *section;
    uint32_t index;
    dg_scalars scalars;
  };

  /// Work that nobody has waited for: who copies now reads what is not yet there.
  void requireQuiet() const {
    require(numDone.load(std::memory_order_acquire) == numLaunched, "a value is copied while work is under way");
  }

  /// Where this process can reach what a device address or an address in staging memory means.
  void *realAddress(void *address) const {
    auto *at = static_cast<std::byte *>(address);
    if (at >= base && at < base + size)
      return real + (at - base);
    for (std::span<std::byte> memory : staging)
      if (at >= memory.data() && at < memory.data() + memory.size())
        return at;
    require(false, "an address is neither of its values nor of staging memory");
    return nullptr;
  }

  void work() {
    for (size_t count = 0;; ++count) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return isStopping || !queue.empty(); });
      if (isStopping)
        return;
      Launch next = queue.front();
      queue.pop_front();
      lock.unlock();
      std::this_thread::sleep_for(delays[count % std::size(delays)]);
      for (const Node &node : next.section->nodes)
        for (uint32_t tile = 0; tile < node.tiles; ++tile)
          node.runTile(next.index, next.scalars, tile);
      numDone.fetch_add(1, std::memory_order_release);
    }
  }

  const KernelLibrary &library;
  std::byte *real = nullptr;
  std::vector<std::span<std::byte>> staging;
  std::thread worker;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Launch> queue;
  bool isStopping = false;
  uint64_t numLaunched = 0; ///< calling thread
  uint32_t pollsSinceDone = latePolls;
  std::atomic<uint64_t> numDone{0};
};

} // namespace

std::unique_ptr<Device> makeShyDevice(const KernelLibrary &library) { return std::make_unique<ShyDevice>(library); }

} // namespace dg::test
