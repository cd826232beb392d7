// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/host/WorkerTeam.h"

#include "runtime/support/SpinWait.h"

#include <atomic>
#include <exception>
#include <optional>
#include <thread>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

namespace dg {

/// Pauses without work before a helper gives its core away inside a step, and before it leaves after one (46 µs on a
/// Xeon).
static constexpr uint32_t spinsBeforeYield = 4000, spinsBeforeLeaving = 4000;

struct WorkerTeam::State {
  State(uint32_t threads, WorkSource &source)
      : numHelpers(int32_t(threads) - 1), source(source), arena(int(threads), 1) {
    // oneTBB lends one thread per core by default; who asks for more gets more.
    if (int(threads) > tbb::this_task_arena::max_concurrency())
      limit.emplace(tbb::global_control::max_allowed_parallelism, threads);
    arena.initialize();
  }

  void help() {
    uint32_t lane = uint32_t(tbb::this_task_arena::current_thread_index());
    uint32_t spins = 0, idleAfterStep = 0;
    while (!stopping.load(std::memory_order_acquire)) {
      if (source.runSome(lane)) {
        spins = idleAfterStep = 0;
      } else if (active.load(std::memory_order_acquire)) {
        idleAfterStep = 0;
        if (++spins < spinsBeforeYield)
          pauseCore();
        else
          std::this_thread::yield();
      } else if (++idleAfterStep < spinsBeforeLeaving) {
        pauseCore();
      } else {
        // Either beginStep sees that this helper left, or the helper sees that a step began: both sequentially
        // consistent. If both do, there is a helper more than needed, which finds no place in the arena.
        present.fetch_sub(1);
        if (!active.load())
          return;
        present.fetch_add(1);
        spins = idleAfterStep = 0;
      }
    }
    present.fetch_sub(1);
  }

  const int32_t numHelpers;
  WorkSource &source;
  std::optional<tbb::global_control> limit;
  tbb::task_arena arena;
  tbb::task_group group;
  alignas(64) std::atomic<bool> active{false};
  std::atomic<bool> stopping{false};
  alignas(64) std::atomic<int32_t> present{0}; ///< helpers called and not yet gone
};

WorkerTeam::WorkerTeam(std::unique_ptr<State> state) : state(std::move(state)) {}

WorkerTeam::~WorkerTeam() { stop(); }

Result<std::unique_ptr<WorkerTeam>> WorkerTeam::create(uint32_t threads, WorkSource &source) {
  try {
    return std::unique_ptr<WorkerTeam>(new WorkerTeam(std::make_unique<State>(threads, source)));
  } catch (const std::exception &error) {
    return Status::error(ErrorKind::runFailed, "cannot start {} threads: {}; use fewer with --threads", threads,
                         error.what());
  }
}

void WorkerTeam::beginStep() {
  state->active.store(true);
  int32_t missing = state->numHelpers - state->present.load();
  if (missing <= 0)
    return;
  state->present.fetch_add(missing);
  try {
    state->arena.execute([&] {
      for (; missing > 0; --missing)
        state->group.run([team = state.get()] { team->help(); });
    });
  } catch (const std::exception &) {
    // Out of memory for a task of 64 bytes: the step goes on without these helpers, the next one asks for them again.
    state->present.fetch_sub(missing);
  }
}

void WorkerTeam::endStep() { state->active.store(false); }

void WorkerTeam::stop() {
  state->stopping.store(true);
  // Helpers that never found a thread run here, and return at once.
  state->arena.execute([&] { state->group.wait(); });
}

} // namespace dg
