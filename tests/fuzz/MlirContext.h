// SPDX-License-Identifier: Apache-2.0
// A context for targets that need MLIR. Making one costs more than an input; but it keeps every attribute that it has
// seen, so it is made new now and then.
#pragma once

#include "ir/dialect/Dialect.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <memory>

namespace dg::fuzz {

/// The context of this input: single-threaded, with the dialect loaded and its messages thrown away.
inline mlir::MLIRContext &freshContext() {
  constexpr unsigned inputsPerContext = 512;
  static std::unique_ptr<mlir::MLIRContext> context;
  static unsigned numInputs = 0;
  if (numInputs++ % inputsPerContext == 0) {
    context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
    context->getOrLoadDialect<ir::DGDialect>();
    context->getDiagEngine().registerHandler([](mlir::Diagnostic &) { return mlir::success(); });
  }
  return *context;
}

} // namespace dg::fuzz
