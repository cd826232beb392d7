// SPDX-License-Identifier: Apache-2.0
// Where a rank notes what it is doing, so that someone else can say it after the rank is dead: plain words in memory
// that the launcher maps too. Written with relaxed stores, one or two per task.
#pragma once

#include <atomic>
#include <cstdint>

namespace dg {

/// One rank's line on the board. Lives in shared memory: no pointers, zero means "nothing yet".
struct ProgressLine {
  std::atomic<uint64_t> step; ///< step being run, from 1
  std::atomic<uint32_t> task; ///< plan task id + 1
  std::atomic<uint32_t> microbatch;
  std::atomic<int32_t> waitingFor; ///< rank + 1 that a communication waits for, 0 = none
  std::atomic<uint32_t> phase;     ///< RankPhase
  std::atomic<uint64_t> pulses;    ///< counts up while the rank waits: who waits and is alive is not to blame
};

enum class RankPhase : uint32_t { starting, connecting, loading, training, evaluating, checkpointing, inferring, done };

} // namespace dg
