// SPDX-License-Identifier: Apache-2.0
// What every text form checks about the attributes that a person wrote.
#pragma once

#include "mlir/IR/OpImplementation.h"

namespace dg::ir {

/// Takes lists of numbers, [1, 2], as the arrays that ops hold. Fails, with the names that there are and the nearest of
/// them, where the text gives an op an attribute that it does not have, or one of another type: MLIR would drop it
/// silently.
mlir::ParseResult checkAttributes(mlir::OpAsmParser &parser, mlir::OperationState &state, llvm::SMLoc location);

} // namespace dg::ir
