// SPDX-License-Identifier: Apache-2.0
#include "codegen/plan/DTypes.h"

#include "runtime/plan/Elements.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace dg::codegen {

Type typeOf(MLIRContext *context, plan::DType type) {
  Builder builder(context);
  return plan::withElement(type, [&]<typename T>(T) -> Type {
    if constexpr (std::is_same_v<T, BFloat16>)
      return builder.getBF16Type();
    else if constexpr (plan::isFloatElement<T>)
      return sizeof(T) == 2 ? builder.getF16Type() : sizeof(T) == 4 ? builder.getF32Type() : builder.getF64Type();
    else if constexpr (std::is_same_v<T, bool>)
      return builder.getI1Type();
    else // si8 and its like are no types of the dialect
      return std::is_signed_v<T> ? builder.getIntegerType(sizeof(T) * 8) : builder.getIntegerType(sizeof(T) * 8, false);
  });
}

plan::DType dtypeOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  for (plan::DType known : allOf<plan::DType>())
    if (typeOf(type.getContext(), known) == element)
      return known;
  llvm_unreachable("type inference lets no other element type through");
}

} // namespace dg::codegen
