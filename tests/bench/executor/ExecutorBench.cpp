// SPDX-License-Identifier: Apache-2.0
// What the executor itself costs: a step of empty kernels, alone and shared, and how well a tiled kernel spreads. Each
// figure is the best of several rounds, because the machines are noisy.
#include "runtime/device/host/HostDevice.h"
#include "tests/unit/executor/TestPlan.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace dg {
namespace {

void empty(void *const *, const dg_scalars *, uint32_t) {}

/// About 20 µs of arithmetic on one core.
void busy(void *const *buffers, const dg_scalars *, uint32_t tile) {
  float value = static_cast<float *>(buffers[0])[tile * 16];
  for (int i = 0; i < 5000; ++i)
    value = value * 0.999f + 1.0f;
  static_cast<float *>(buffers[0])[tile * 16] = value;
}

enum class Shape { chain, wide };

/// Nanoseconds for one step of `numTasks` tasks of `tiles` tiles each: the best round of `numSteps` steps.
double stepNs(int numSteps, uint32_t threads, uint32_t numTasks, uint32_t tiles, const char *kernel, Shape shape) {
  test::PlanMaker maker;
  plan::ValueId value = maker.addValue("value", {int64_t(16) * tiles});
  plan::ChunkId chunk = maker.addChunk();
  for (uint32_t i = 0; i < numTasks; ++i)
    maker.addKernel(chunk, kernel, {value},
                    shape == Shape::chain && i > 0 ? std::vector{i - 1} : std::vector<uint32_t>{}, tiles);
  maker.addAction(chunk);
  test::TableLibrary library({{"empty", empty}, {"busy", busy}});
  ExecutorOptions options;
  options.threads = threads;
  options.leastSharedWork = {};
  auto executor = Executor::create(maker.plan, {}, makeHostDevice(library), nullptr, options);
  if (!executor) {
    std::fprintf(stderr, "%s\n", executor.status().message().c_str());
    std::exit(1);
  }
  double best = 1e30;
  for (int round = 0; round < 2000 / numSteps; ++round) {
    auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < numSteps; ++step)
      if (!(*executor)->runStep(0, test::scalarsOf(step + 1)))
        std::exit(1);
    auto end = std::chrono::steady_clock::now();
    best = std::min(best, std::chrono::duration<double, std::nano>(end - start).count() / numSteps);
  }
  return best;
}

} // namespace
} // namespace dg

int main() {
  using namespace dg;
  for (uint32_t threads : {1u, 2u}) {
    double none = stepNs(100, threads, 0, 1, "empty", Shape::chain);
    double chain = stepNs(100, threads, 1000, 1, "empty", Shape::chain);
    double wide = stepNs(100, threads, 1000, 1, "empty", Shape::wide);
    double tiled = stepNs(100, threads, 100, 16, "empty", Shape::chain);
    double work = stepNs(1, threads, 4, 16, "busy", Shape::chain);
    std::printf(
        "threads %u: empty step %.0f ns, task in a chain %.1f ns, independent task %.1f ns, empty tile %.1f ns, "
        "64 busy tiles %.0f us\n",
        threads, none, (chain - none) / 1000, (wide - none) / 1000, (tiled - none) / 1600, work / 1000);
  }
  return 0;
}
