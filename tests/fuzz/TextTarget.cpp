// SPDX-License-Identifier: Apache-2.0
// Models as text: the guard, MLIR's parser behind it, the verifiers of the dialect, and the types that are deduced from
// what they let pass. What deduction accepts must verify.
#include "ir/GraphOps.h"
#include "ir/TextGuard.h"
#include "ir/TypeDeduction.h"
#include "tests/fuzz/FuzzTarget.h"
#include "tests/fuzz/MlirContext.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace dg;

/// As --dg-deduce-types does it, one op after the other, with a batch of 4 for `?`.
static mlir::LogicalResult deduce(ir::GraphOp graph) {
  for (mlir::BlockArgument argument : graph.getBody().getArguments()) {
    auto type = mlir::cast<mlir::RankedTensorType>(
        mlir::cast<mlir::TypeAttr>(graph.getInputTypes()[argument.getArgNumber()]).getValue());
    llvm::SmallVector<int64_t> shape(type.getShape());
    for (int64_t &size : shape)
      size = mlir::ShapedType::isDynamic(size) ? 4 : size;
    argument.setType(type.clone(shape));
  }
  for (mlir::Operation &op : graph.getBody().front()) {
    if (auto parameter = mlir::dyn_cast<ir::ParameterOp>(op))
      parameter.getResult().setType(parameter.getType());
    if (failed(ir::deduceResults(&op)))
      return mlir::failure();
  }
  return mlir::success();
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
  for (auto graph : module->getOps<ir::GraphOp>())
    if (succeeded(deduce(graph)))
      (void)verify(graph);
  return 0;
}
