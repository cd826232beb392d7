// SPDX-License-Identifier: Apache-2.0
// Where an op comes from, in words.
#pragma once

#include "mlir/IR/Location.h"

#include <string>

namespace dg::ir {

/// `file:line:column` of the first place in a file that a location names; empty if none.
std::string sourceOf(mlir::Location location);

} // namespace dg::ir
