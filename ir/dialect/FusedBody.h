// SPDX-License-Identifier: Apache-2.0
// The text form of the region of elementwise ops that a fused op has: its names are its own, as it is isolated from
// above.
#pragma once

#include "mlir/IR/OpImplementation.h"

namespace dg::ir {

inline mlir::ParseResult parseIsolated(mlir::OpAsmParser &parser, mlir::Region &body) {
  if (parser.parseRegion(body, {}, /*enableNameShadowing=*/true))
    return mlir::failure();
  if (body.empty())
    body.emplaceBlock();
  return mlir::success();
}

inline void printIsolated(mlir::OpAsmPrinter &printer, mlir::Operation *, mlir::Region &body) {
  printer.printRegion(body);
}

} // namespace dg::ir
