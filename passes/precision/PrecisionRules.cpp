// SPDX-License-Identifier: Apache-2.0
#include "passes/precision/PrecisionRules.h"

namespace dg::passes {

mlir::Type parsePrecision(mlir::MLIRContext *context, llvm::StringRef name) {
  if (name == "f32")
    return mlir::Float32Type::get(context);
  if (name == "bf16")
    return mlir::BFloat16Type::get(context);
  return name == "f16" ? mlir::Type(mlir::Float16Type::get(context)) : mlir::Type();
}

PrecisionRule precisionRuleOf(mlir::Operation *op) {
  using ir::PrecisionClass;
  auto classed = mlir::dyn_cast<ir::PrecisionOp>(op);
  switch (classed ? classed.getPrecisionClass() : PrecisionClass::asWritten) {
  case PrecisionClass::product:
    return {Casting::low, "products sum in f32 whatever their factors have"};
  case PrecisionClass::table:
    return {Casting::narrows, "rows of a table are the first activations"};
  case PrecisionClass::follows:
    return {Casting::follows, "element by element, or only moved: it follows what it reads"};
  case PrecisionClass::rows:
    return {Casting::rows, "rows follow what is read, moments and parameters are f32"};
  case PrecisionClass::loss:
    return {Casting::kept, "a loss needs the digits of f32"};
  case PrecisionClass::statistics:
    return {Casting::kept, "statistics are sums over many elements"};
  case PrecisionClass::steep:
    return {Casting::kept, "its slope or range is larger than 16 bits hold"};
  case PrecisionClass::asWritten:
  case PrecisionClass::undecided:
    break;
  }
  return {Casting::kept, "nothing is known to be gained"};
}

} // namespace dg::passes
