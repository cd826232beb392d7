// SPDX-License-Identifier: Apache-2.0
// One sample of a set, as a test wants it.
#pragma once

#include "runtime/data/Dataset.h"

namespace dg::test {

inline Status readSample(const data::Dataset &dataset, const char *argument, int64_t sample, void *to) {
  data::Scratch scratch;
  return dataset.find(argument)->copySample(sample, static_cast<std::byte *>(to), scratch);
}

} // namespace dg::test
