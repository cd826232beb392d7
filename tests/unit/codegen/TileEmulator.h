// SPDX-License-Identifier: Apache-2.0
// The tile instructions of AMX on processors without them: each raises SIGILL, and the handler does what Intel's manual
// says (Software Developer's Manual, volume 2), on tiles in memory, and steps over it. Code that was generated for AMX
// then runs as it is. Known are ldtilecfg, tilerelease, tilezero, tileloadd, tileloaddt1, tilestored and tdpbf16ps;
// any other instruction, and a use that the manual forbids, ends the process with a message.
#pragma once

#include <cstdint>

namespace dg::test {

class TileEmulator {
public:
  /// Takes over SIGILL in this process for all its threads, each of which has its own tiles. The processor needs
  /// AVX-512.
  TileEmulator();
  /// Gives SIGILL back.
  ~TileEmulator();
  TileEmulator(const TileEmulator &) = delete;
  TileEmulator &operator=(const TileEmulator &) = delete;

  /// Products of tiles so far, of all threads.
  static uint64_t numProducts();
};

} // namespace dg::test
