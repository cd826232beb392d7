// SPDX-License-Identifier: Apache-2.0
// Finds NaN and infinity among the elements of a value.
#pragma once

#include "runtime/plan/Plan.h"

#include <cstddef>
#include <span>
#include <string>

namespace dg::plan {

/// "nan at element 7 of 320", or nothing when all of these elements of a float type are finite.
std::string describeNonFinite(std::span<const std::byte> bytes, DType type);

} // namespace dg::plan
