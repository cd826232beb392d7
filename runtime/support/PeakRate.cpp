// SPDX-License-Identifier: Apache-2.0
#include "runtime/support/PeakRate.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace dg {

namespace {
constexpr int64_t rounds = 1 << 17;
/// More sums than a processor needs to fill its multiply-add pipes (latency 4 × 2 pipes), fewer than it has registers.
constexpr int numSums = 12;

/// Vectors of so many bytes; the answer keeps the compiler from leaving the work out.
template <int bytes> [[gnu::always_inline]] inline float multiplyAdd() {
  typedef float Vector __attribute__((vector_size(bytes)));
  Vector sums[numSums], factor, term;
  for (int i = 0; i < int(bytes / sizeof(float)); ++i)
    factor[i] = 0.999f, term[i] = 0.001f * float(i);
  for (int i = 0; i < numSums; ++i)
    sums[i] = term * float(i);
  for (int64_t round = 0; round < rounds; ++round)
    for (Vector &sum : sums)
      sum = sum * factor + term;
  Vector total = sums[0];
  for (int i = 1; i < numSums; ++i)
    total += sums[i];
  return total[0];
}

[[gnu::target("avx512f"), gnu::noinline]] float multiplyAddAvx512() { return multiplyAdd<64>(); }
[[gnu::target("avx2,fma"), gnu::noinline]] float multiplyAddAvx2() { return multiplyAdd<32>(); }
[[gnu::noinline]] float multiplyAddPlain() { return multiplyAdd<16>(); }
} // namespace

double measurePeakFlops() {
  float (*run)() = multiplyAddPlain;
  double lanes = 4;
  if (__builtin_cpu_supports("avx512f"))
    run = multiplyAddAvx512, lanes = 16;
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    run = multiplyAddAvx2, lanes = 8;
  double best = 0;
  volatile float result = 0;
  for (int attempt = 0; attempt < 20; ++attempt) {
    auto start = std::chrono::steady_clock::now();
    result = result + run();
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2 * lanes * numSums * double(rounds) / seconds.count());
  }
  return best;
}

} // namespace dg
