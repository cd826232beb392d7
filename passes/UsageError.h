// SPDX-License-Identifier: Apache-2.0
// Errors of what a flag asks for, and not of the model: dgc ends with another exit code. Apart, because the passes that
// find them and the driver that ends on them must agree on the mark.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"

namespace dg::passes {

/// A diagnostic carries nothing of its own but a location: this one has a mark.
inline constexpr llvm::StringLiteral usageMark = "dg.usage";

/// An error at the op that a flag does not fit.
inline mlir::InFlightDiagnostic emitUsageError(mlir::Operation *op) {
  mlir::MLIRContext *context = op->getContext();
  return mlir::emitError(mlir::FusedLoc::get({op->getLoc()}, mlir::StringAttr::get(context, usageMark), context));
}

/// The same, which names the op, as emitOpError does.
inline mlir::InFlightDiagnostic emitOpUsageError(mlir::Operation *op) {
  return emitUsageError(op) << "'" << op->getName() << "' op ";
}

inline bool isUsageError(mlir::Diagnostic &error) {
  auto place = llvm::dyn_cast<mlir::FusedLoc>(mlir::LocationAttr(error.getLocation()));
  auto mark = place ? llvm::dyn_cast_or_null<mlir::StringAttr>(place.getMetadata()) : nullptr;
  return mark && mark.getValue() == usageMark;
}

} // namespace dg::passes
