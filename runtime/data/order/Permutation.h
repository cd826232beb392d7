// SPDX-License-Identifier: Apache-2.0
// A permutation that is computed, never listed: any position in constant time, so that an epoch over a billion samples
// needs no memory and a resumed run is at its position at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dg::data {

/// Of 0 .. count-1, drawn by `key`. A value; any thread may ask it.
class Permutation {
public:
  Permutation(int64_t count, uint64_t key);
  /// What stands at `position`, 0 <= position < count.
  int64_t operator[](int64_t position) const;
  /// What stands at `position` and after it: several at once take a fraction of the time of each alone.
  void fill(int64_t position, std::span<int64_t> out) const;

private:
  template <size_t n> struct Places;
  template <size_t n> void mix(Places<n> &places) const;
  /// The first of the numbers that this place, sent on and on, becomes.
  int64_t walk(uint64_t column, uint64_t row) const;

  uint64_t count, key;
  uint64_t columns, rows; ///< the grid that the numbers are laid out on; columns · rows >= count
};

} // namespace dg::data
