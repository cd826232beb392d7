// SPDX-License-Identifier: Apache-2.0
// How long launchers are patient with each other. Both ends of a line keep the same times.
#pragma once

#include <algorithm>
#include <chrono>

namespace dg {

/// A turn of a launcher's loop.
inline constexpr std::chrono::milliseconds tickTime{100};
/// Between two signs of life.
inline constexpr std::chrono::milliseconds beatTime{1000};
/// After that much silence a launcher knocks again at the rendezvous, once a second: TCP, whose pauses double, may need
/// 25 s to see that a link which was down for 15 s is back.
inline constexpr std::chrono::milliseconds knockAfter{3000}, knockTime{1000};
/// After that much silence, knocks included, the other side is lost: the time-out of the job, with room for some signs
/// of life.
inline std::chrono::milliseconds silenceTime(std::chrono::milliseconds timeout) {
  return std::max(timeout, 5 * beatTime);
}
/// For the last message.
inline constexpr std::chrono::milliseconds farewellTime{2000};

} // namespace dg
