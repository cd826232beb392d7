// SPDX-License-Identifier: Apache-2.0
// What a program wants to be fed, as far as a reader of samples needs to know it.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dg::data {

struct Argument {
  std::string name;
  plan::DType dtype = plan::DType::f32;
  std::vector<int64_t> sampleShape; ///< without the batch dimension, or of the whole argument
  int64_t indexBound = 0;           ///< which places in a table its elements may be, as plan::Port has it
  bool isWhole = false;             ///< the program has no batch: a source is the argument, one sample
};

} // namespace dg::data
