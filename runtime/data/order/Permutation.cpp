// SPDX-License-Identifier: Apache-2.0
// A generalised Feistel network (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002). A number is
// a place on a grid. Each round moves every row sideways, or every column up, by an amount that the row or column
// decides: that is one-to-one, and so are all rounds together. A place outside the numbers is sent through again until
// it is one of them ("cycle walking"), which is one-to-one too; the grid has at most columns - 1 such places.
#include "runtime/data/order/Permutation.h"

#include <cmath>

namespace dg::data {

/// Pairs of rounds. Four of a Feistel network with random functions cannot be told from a random permutation (Luby and
/// Rackoff); small grids want more.
static constexpr uint64_t pairs = 6;

/// Uniform in [0, bound): the finaliser of SplitMix64, scaled.
static uint64_t drawn(uint64_t key, uint64_t round, uint64_t x, uint64_t bound) {
  uint64_t z = (key + round * 0x9e3779b97f4a7c15u) ^ (x * 0xd6e8feb86659fd93u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return uint64_t((static_cast<unsigned __int128>(z) * bound) >> 64);
}

Permutation::Permutation(int64_t count, uint64_t key)
    : count(uint64_t(count)), key(key), columns(uint64_t(std::ceil(std::sqrt(double(count > 0 ? count : 1))))),
      rows(((count > 0 ? uint64_t(count) : 1) + columns - 1) / columns) {}

int64_t Permutation::operator[](int64_t position) const {
  uint64_t place = uint64_t(position);
  do {
    uint64_t column = place % columns, row = place / columns;
    for (uint64_t pair = 0; pair < pairs; ++pair) {
      column += drawn(key, 2 * pair, row, columns);
      column -= column >= columns ? columns : 0;
      row += drawn(key, 2 * pair + 1, column, rows);
      row -= row >= rows ? rows : 0;
    }
    place = row * columns + column;
  } while (place >= count);
  return int64_t(place);
}

} // namespace dg::data
