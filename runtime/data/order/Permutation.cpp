// SPDX-License-Identifier: Apache-2.0
// A generalised Feistel network (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002). A number is
// a place on a grid. Each round moves every row sideways, or every column up, by an amount that the row or column
// decides: that is one-to-one, and so are all rounds together. A place outside the numbers is sent through again until
// it is one of them ("cycle walking"), which is one-to-one too; the grid has at most columns - 1 such places.
#include "runtime/data/order/Permutation.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace dg::data {

/// Pairs of rounds. Four rounds of a Feistel network with random functions cannot be told from a random permutation
/// (Luby and Rackoff); small grids want more.
static constexpr uint64_t pairs = 3, pairsOfSmall = 8, smallColumns = 64;

/// Positions that go through the rounds side by side: one alone waits for each of its products.
static constexpr size_t lanes = 8;

/// Uniform in [0, bound): two products with a fold between them, scaled.
static uint64_t drawn(uint64_t key, uint64_t round, uint64_t x, uint64_t bound) {
  uint64_t z = (x + key + round * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 32)) * 0x94d049bb133111ebu;
  return uint64_t((static_cast<unsigned __int128>(z) * bound) >> 64);
}

Permutation::Permutation(int64_t count, uint64_t key)
    : count(uint64_t(count)), key(key), columns(uint64_t(std::ceil(std::sqrt(double(count > 0 ? count : 1))))),
      rows(((count > 0 ? uint64_t(count) : 1) + columns - 1) / columns) {}

/// Places of the grid, side by side.
template <size_t n> struct Permutation::Places {
  std::array<uint64_t, n> column, row;
};

/// Sends places through all rounds, once.
template <size_t n> void Permutation::mix(Places<n> &places) const {
  Places<n> at = places;
  const uint64_t numPairs = columns < smallColumns ? pairsOfSmall : pairs;
  for (uint64_t pair = 0; pair < numPairs; ++pair) {
#pragma clang loop unroll(full) vectorize(disable)
    for (size_t i = 0; i < n; ++i) {
      at.column[i] += drawn(key, 2 * pair, at.row[i], columns);
      at.column[i] -= at.column[i] >= columns ? columns : 0;
      at.row[i] += drawn(key, 2 * pair + 1, at.column[i], rows);
      at.row[i] -= at.row[i] >= rows ? rows : 0;
    }
  }
  places = at;
}

int64_t Permutation::walk(uint64_t column, uint64_t row) const {
  uint64_t place = row * columns + column;
  while (place >= count) {
    Places<1> at = {{place % columns}, {place / columns}};
    mix(at);
    place = at.row[0] * columns + at.column[0];
  }
  return int64_t(place);
}

void Permutation::fill(int64_t position, std::span<int64_t> out) const {
  uint64_t column = uint64_t(position) % columns, row = uint64_t(position) / columns;
  while (!out.empty()) {
    Places<lanes> places;
    for (size_t i = 0; i < lanes; ++i) {
      places.column[i] = column, places.row[i] = row;
      const bool isRowOver = ++column == columns;
      column = isRowOver ? 0 : column, row += isRowOver;
    }
    mix(places);
    const size_t num = std::min(out.size(), lanes); // the others are past the end, and not looked at
    for (size_t i = 0; i < num; ++i)
      out[i] = walk(places.column[i], places.row[i]);
    out = out.subspan(num);
  }
}

int64_t Permutation::operator[](int64_t position) const {
  Places<1> at = {{uint64_t(position) % columns}, {uint64_t(position) / columns}};
  mix(at);
  return walk(at.column[0], at.row[0]);
}

} // namespace dg::data
