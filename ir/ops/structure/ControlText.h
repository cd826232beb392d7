// SPDX-License-Identifier: Apache-2.0
// The text form of ops that run graphs of their own:
// `dg.scan carry(%h = %h0) over(%x = %xs) with(%w = %weight) [attributes {…}] [: (types) -> types] { … }`.
#pragma once

#include "mlir/IR/OpImplementation.h"

namespace dg::ir {

/// Operands that the bodies see under names of their own: `carry(%h = %h0, …)`.
struct OperandGroup {
  llvm::StringRef keyword;
  llvm::StringRef countName; ///< the attribute that has their number; the last group has none
  bool isSliced = false;     ///< bodies see a slice of dimension 0 of each
};

struct ControlForm {
  bool hasCondition = false; ///< the first operand, which bodies do not see
  unsigned numBodies = 1;    ///< with `else` between them
  llvm::ArrayRef<OperandGroup> groups;
};

mlir::ParseResult parseControl(mlir::OpAsmParser &parser, mlir::OperationState &state, const ControlForm &form);
void printControl(mlir::OpAsmPrinter &printer, mlir::Operation *op, const ControlForm &form);

} // namespace dg::ir
