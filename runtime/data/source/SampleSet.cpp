// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/source/SampleSet.h"

#include <algorithm>

namespace dg::data {

static std::vector<int64_t> rowOf(const Tensor &tensor, bool isWhole) {
  return {tensor.shape.begin() + (isWhole ? 0 : 1), tensor.shape.end()};
}

TensorSet::TensorSet(std::string source, Tensor tensor, bool isWhole)
    : SampleSet(std::move(source), tensor.type, rowOf(tensor, isWhole), isWhole ? 1 : tensor.shape.front()),
      data(tensor.data), owner(std::move(tensor.owner)),
      sampleBytes(bytesOf(sampleShape, sizeOf(tensor.type)).value_or(0)) {}

} // namespace dg::data
