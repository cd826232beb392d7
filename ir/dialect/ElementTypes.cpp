// SPDX-License-Identifier: Apache-2.0
#include "ir/dialect/ElementTypes.h"

#include "runtime/support/BFloat16.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

bool isElementType(Type type) {
  if (type.isF32() || type.isF64() || type.isF16() || type.isBF16())
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer || integer.isSigned())
    return false;
  if (integer.getWidth() == 1)
    return integer.isSignless();
  return integer.getWidth() == 8 || integer.getWidth() == 16 || integer.getWidth() == 32 || integer.getWidth() == 64;
}

Type arithmeticType(Type type) { return isHalf(type) ? Type(Float32Type::get(type.getContext())) : type; }

int64_t elementBytes(Type type) { return (type.getIntOrFloatBitWidth() + 7) / 8; }

double smallestElement(Type type) {
  if (isa<FloatType>(type))
    return -INFINITY;
  return isUnsigned(type) ? 0 : -std::ldexp(1.0, int(type.getIntOrFloatBitWidth()) - 1);
}

double largestElement(Type type) {
  if (isa<FloatType>(type))
    return INFINITY;
  return isBool(type) ? 1 : std::ldexp(1.0, int(type.getIntOrFloatBitWidth()) - (isUnsigned(type) ? 0 : 1)) - 1;
}

static double wrapped(double value, Type type) {
  if (isBool(type))
    return value != 0;
  double range = std::ldexp(1.0, int(type.getIntOrFloatBitWidth()));
  double smallest = isUnsigned(type) ? 0 : -range / 2;
  value = std::trunc(value);
  if (value >= smallest && value < smallest + range)
    return value;
  if (!std::isfinite(value))
    return 0;
  double rest = std::fmod(value - smallest, range);
  return (rest < 0 ? rest + range : rest) + smallest;
}

double storedElement(double value, Type type) {
  if (type.isF32())
    return float(value);
  if (type.isF16())
    return double(static_cast<_Float16>(value));
  if (type.isBF16())
    return double(BFloat16(float(value)));
  return type.isF64() ? value : wrapped(value, type);
}

void wrapIntegers(RankedTensorType type, HostTensor &tensor) {
  if (isa<IntegerType>(type.getElementType()))
    for (double &element : tensor.data)
      element = wrapped(element, type.getElementType());
}

} // namespace dg::ir
