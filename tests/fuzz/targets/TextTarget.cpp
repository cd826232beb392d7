// SPDX-License-Identifier: Apache-2.0
// Models as text: the guard, MLIR's parser behind it, the verifiers of the dialect, the types that are deduced from
// what they let pass, and, of a small model, the parts and gradients of its ops. What each pass leaves must verify.
#include "ir/dialect/TextGuard.h"
#include "passes/Passes.h"
#include "tests/fuzz/FuzzTarget.h"
#include "tests/fuzz/MlirContext.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace dg;

/// So small that what follows takes a part of the second.
static bool isSmall(mlir::ModuleOp module) {
  constexpr int64_t mostOps = 64, mostElements = 1 << 12;
  int64_t numOps = 0;
  auto isSmallType = [](mlir::Type type) {
    auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type);
    return tensor && tensor.hasStaticShape() && tensor.getNumElements() <= mostElements;
  };
  return !module
              .walk([&](mlir::Operation *op) {
                bool isGood = ++numOps <= mostOps && llvm::all_of(op->getOperandTypes(), isSmallType) &&
                              llvm::all_of(op->getResultTypes(), isSmallType);
                return isGood ? mlir::WalkResult::advance() : mlir::WalkResult::interrupt();
              })
              .wasInterrupted();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz::OneSecond limit;
  // The parser wants a zero behind the text.
  std::string text(reinterpret_cast<const char *>(data), size);
  if (ir::findTextFault(text))
    return 0;
  mlir::MLIRContext &context = fuzz::freshContext();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  if (!module)
    return 0;
  // With a batch of 4 for `?`.
  mlir::PassManager deduction(&context);
  deduction.addPass(passes::createDeduceTypes({.batch = 4}));
  if (failed(deduction.run(*module)) || !isSmall(*module))
    return 0;
  mlir::PassManager training(&context);
  training.addPass(passes::createWeighSamples());
  training.addPass(passes::createTrainingForms());
  training.addPass(passes::createDecompose());
  training.addPass(passes::createDifferentiate());
  (void)training.run(*module);
  return 0;
}
