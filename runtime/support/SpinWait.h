// SPDX-License-Identifier: Apache-2.0
// What waits inside a step are made of: a clock and a pause, neither of them a system call, and how many pauses.
#pragma once

#include <chrono>
#include <cstdint>

namespace dg {

/// The steady clock, in nanoseconds.
inline uint64_t nowNs() { return uint64_t(std::chrono::steady_clock::now().time_since_epoch().count()); }

/// How often a wait looks before it gives its core to others. On a core of its own it would give it to nobody; on one
/// that it shares, a rank that has work waits for it.
inline constexpr uint32_t spinsOnOwnCore = 1000, spinsOnSharedCore = 50;

/// Tells the core that this is a spin loop.
inline void pauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace dg
