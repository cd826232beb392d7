// SPDX-License-Identifier: Apache-2.0
// A tensor as a file holds it: element type, shape and bytes that stay valid as long as the tensor does (mapped or in
// memory).
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dg::data {

using plan::DType;

struct Tensor {
  DType type = DType::u8; ///< i1: a byte, true where it is not 0
  std::vector<int64_t> shape;
  const std::byte *data = nullptr;
  std::shared_ptr<const void> owner; ///< keeps `data` alive
};

/// "60000x28x28"; "scalar" for no dimension.
std::string describeShape(const std::vector<int64_t> &shape);
/// Product of the dimensions × elementBytes; nothing if a dimension is negative or the product does not fit 63 bits.
std::optional<int64_t> bytesOf(const std::vector<int64_t> &shape, int64_t elementBytes);

} // namespace dg::data
