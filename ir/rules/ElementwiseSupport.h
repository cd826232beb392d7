// SPDX-License-Identifier: Apache-2.0
// What the families of elementwise ops share: one type rule, one sharding rule, one evaluation. An op adds its scalar
// function and its gradient.
#pragma once

#include "ir/dialect/Dialect.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/rules/ShardingRules.h"
#include "ir/rules/TypeInference.h"

namespace dg::ir {

/// The element types that an op is defined for.
enum class Domain { number, real, integer, boolean, any };
bool isIn(Domain domain, mlir::Type element);
llvm::StringRef describe(Domain domain);

/// The type of an op whose operands broadcast, and from number `first` on have one element type of the domain. The
/// result has `element`, or theirs where it is null.
inline mlir::FailureOr<mlir::Type> inferElementwise(const Rejection &reject, mlir::ValueRange operands, Domain domain,
                                                    mlir::Type element = {}, unsigned first = 0) {
  auto type = tensorOf(operands[first]);
  if (!isIn(domain, type.getElementType()))
    return reject("has an operand ", type, ", expected elements that are ", describe(domain));
  llvm::SmallVector<int64_t> shape(tensorOf(operands[0]).getShape());
  for (auto [index, operand] : llvm::enumerate(operands)) {
    if (index > first && tensorOf(operand).getElementType() != type.getElementType())
      return reject("has operands ", type, " and ", operand.getType(), ", expected equal element types");
    auto joined = broadcastShapes(shape, tensorOf(operand).getShape());
    if (!joined)
      return reject("has operands ", operands[0].getType(), " and ", operand.getType(),
                    ", expected equal sizes, or 1, counted from the last dimension");
    shape = *joined;
  }
  return mlir::RankedTensorType::get(shape, element ? element : type.getElementType());
}

/// Calls the op's scalar function for each element of the result.
void evaluateElementwise(ElementwiseOp op, llvm::ArrayRef<HostTensor> operands, HostTensor &result);

} // namespace dg::ir
