// SPDX-License-Identifier: Apache-2.0
// Small models drawn at random, as text: what a person could write, in shapes that nobody would.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace dg::passes::test {

struct RandomModel {
  std::string text;       ///< a module with @loss
  int64_t indexBound = 1; ///< integer inputs are below it
};

/// A perceptron (with skips over several layers, tied weights, frozen and scaled parts), a convolution net, or a
/// transformer with pre- or post-norm blocks and tied or untied head; the same for the same state of `random`.
RandomModel drawModel(std::mt19937_64 &random);

} // namespace dg::passes::test
