// SPDX-License-Identifier: Apache-2.0
// Random data sets: "randn:1000x10" and "randint:10:1000". The numbers depend on the seed and the argument's name only,
// so every plan sees the same data.
#pragma once

#include "runtime/data/format/Tensor.h"
#include "runtime/support/Status.h"

#include <string>

namespace dg::data {

/// Whether the spec names a random source rather than files.
bool isRandomSpec(const std::string &spec);

/// Draws the whole set into memory: f32 for randn, i64 for randint. Fails (usage) on a malformed spec.
Result<Tensor> makeRandom(const std::string &spec, const std::string &argument, uint64_t seed);

} // namespace dg::data
