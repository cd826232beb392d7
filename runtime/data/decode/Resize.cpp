// SPDX-License-Identifier: Apache-2.0
// Each row is scaled, then each column. A weight is a multiple of 2^-22, so that sums do not depend on their order or
// on the machine.
#include "runtime/data/decode/Image.h"

#include <algorithm>
#include <cmath>

namespace dg::data {

namespace {

constexpr int weightBits = 22;

/// For each target place the first source place that it takes from, how many, and their weights.
struct Weights {
  std::vector<int64_t> first, count;
  std::vector<int32_t> values; ///< `most` for each target place
  int64_t most = 0;
};

Weights weigh(int64_t from, int64_t to) {
  Weights weights;
  const double scale = double(from) / double(to), reach = std::max(scale, 1.0);
  weights.most = int64_t(std::ceil(reach)) * 2 + 1;
  weights.values.assign(size_t(to * weights.most), 0);
  std::vector<double> triangle(size_t(weights.most), 0.0);
  for (int64_t place = 0; place < to; ++place) {
    const double centre = (double(place) + 0.5) * scale;
    const int64_t begin = std::max<int64_t>(int64_t(centre - reach + 0.5), 0),
                  end = std::min<int64_t>(int64_t(centre + reach + 0.5), from);
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) {
      const double distance = std::abs((double(i) - centre + 0.5) / reach);
      sum += triangle[size_t(i - begin)] = std::max(1.0 - distance, 0.0);
    }
    for (int64_t i = begin; i < end; ++i)
      weights.values[size_t(place * weights.most + i - begin)] =
          int32_t(std::llround(triangle[size_t(i - begin)] / sum * double(1 << weightBits)));
    weights.first.push_back(begin);
    weights.count.push_back(end - begin);
  }
  return weights;
}

/// Scales `lines` lines whose elements are `step` apart; all elements of a step are scaled together.
void scaleAlong(const std::byte *from, int64_t fromLine, std::byte *to, int64_t toLine, int64_t lines, int64_t step,
                const Weights &weights) {
  for (int64_t line = 0; line < lines; ++line, from += fromLine, to += toLine)
    for (size_t place = 0; place < weights.first.size(); ++place) {
      const int32_t *weight = &weights.values[place * size_t(weights.most)];
      const std::byte *first = from + weights.first[place] * step;
      for (int64_t element = 0; element < step; ++element) {
        int64_t sum = int64_t(1) << (weightBits - 1);
        for (int64_t i = 0; i < weights.count[place]; ++i)
          sum += int64_t(first[i * step + element]) * weight[i];
        to[int64_t(place) * step + element] = std::byte(std::clamp<int64_t>(sum >> weightBits, 0, 255));
      }
    }
}

} // namespace

void resizeImage(std::span<const std::byte> from, const ImageShape &fromShape, std::span<std::byte> to,
                 const ImageShape &toShape) {
  const int64_t fromRow = fromShape.width * fromShape.channels, toRow = toShape.width * toShape.channels;
  std::vector<std::byte> narrowed(size_t(fromShape.height * toRow));
  scaleAlong(from.data(), fromRow, narrowed.data(), toRow, fromShape.height, fromShape.channels,
             weigh(fromShape.width, toShape.width));
  scaleAlong(narrowed.data(), 0, to.data(), 0, 1, toRow, weigh(fromShape.height, toShape.height));
}

} // namespace dg::data
