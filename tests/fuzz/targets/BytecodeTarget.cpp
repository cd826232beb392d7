// SPDX-License-Identifier: Apache-2.0
// Models as MLIR's bytecode. What MLIR's reader does with them it does in a process of its own; the promise is that
// this one goes on, and that what comes over verifies.
#include "compiler/ReadBytecode.h"
#include "ir/dialect/Dialect.h"
#include "tests/fuzz/FuzzTarget.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

using namespace dg;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A context of its own, as a compilation has it: the child inherits what the reader makes of it.
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.getOrLoadDialect<ir::DGDialect>();
  compiler::Messages messages([](const compiler::Message &) {});
  const llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  auto module = compiler::readBytecode({bytes, "fuzz.mlirbc"}, context, messages);
  fuzz::check(!module || mlir::succeeded(mlir::verify(**module)), "a model that reads verifies");
  return 0;
}
