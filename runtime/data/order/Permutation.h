// SPDX-License-Identifier: Apache-2.0
// A permutation that is computed, never listed: any position in constant time, so that an epoch over a billion samples
// needs no memory and a resumed run is at its position at once.
#pragma once

#include <cstdint>

namespace dg::data {

/// Of 0 .. count-1, drawn by `key`. A value; any thread may ask it.
class Permutation {
public:
  Permutation(int64_t count, uint64_t key);
  /// What stands at `position`, 0 <= position < count.
  int64_t operator[](int64_t position) const;

private:
  uint64_t count, key;
  uint64_t columns, rows; ///< the grid that the numbers are laid out on; columns · rows >= count
};

} // namespace dg::data
