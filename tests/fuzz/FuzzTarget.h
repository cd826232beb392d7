// SPDX-License-Identifier: Apache-2.0
// What every fuzz target has: the function that libFuzzer, or Replay.cpp, calls with a stranger's bytes, and a check
// that ends the process where a reader breaks a promise of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>

/// Gives the bytes to the reader. Must neither crash, hang, leak nor break what it checks, whatever they are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace dg::fuzz {

/// A promise of the reader; a fuzzer takes its breach for a crash, also without assertions.
inline void check(bool holds, const char *promise) {
  if (holds)
    return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

/// Ends the process where an input took more than a second of processor time. libFuzzer's own limit counts the time on
/// the wall, in which a machine with other work to do may do nothing for this process.
class OneSecond {
public:
  OneSecond() : began(now()) {}
  ~OneSecond() { check(now() - began < 1.0, "an input takes at most a second of processor time"); }
  OneSecond(const OneSecond &) = delete;
  OneSecond &operator=(const OneSecond &) = delete;

private:
  static double now() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  }
  double began;
};

/// Reads every byte, so that AddressSanitizer sees a span that reaches too far.
inline void touch(std::span<const std::byte> bytes) {
  unsigned sum = 0;
  for (std::byte byte : bytes)
    sum += unsigned(byte);
  asm volatile("" : : "r"(sum)); // the sum is used, so the bytes are read
}

inline std::span<const std::byte> bytesOf(const uint8_t *data, size_t size) {
  return std::as_bytes(std::span(data, size));
}

} // namespace dg::fuzz
