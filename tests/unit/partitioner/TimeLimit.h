// SPDX-License-Identifier: Apache-2.0
// How much processor time a test of speed allows: what the README promises, and twenty times that where a sanitizer or
// the lack of optimisation slows everything down.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define DG_TEST_IS_SLOWED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
#define DG_TEST_IS_SLOWED 1
#endif

namespace dg {

#ifdef DG_TEST_IS_SLOWED
inline constexpr double timeLimitFactor = 20;
#else
inline constexpr double timeLimitFactor = 1;
#endif

} // namespace dg
