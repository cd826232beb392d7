// SPDX-License-Identifier: Apache-2.0
#include "ir/dialect/Elements.h"
#include "ir/dialect/ElementTypes.h"

#include "llvm/ADT/APFloat.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;

namespace dg::ir {

/// Calls `visit` with a C++ number of the element type; for f16 and bf16 with none.
template <typename Visit> static void withNumber(Type elementType, Visit visit) {
  if (elementType.isF32())
    return visit(float());
  if (elementType.isF64())
    return visit(double());
  auto integer = cast<IntegerType>(elementType);
  bool isUnsigned = integer.isUnsigned();
  switch (integer.getWidth()) {
  case 8:
    return isUnsigned ? visit(uint8_t()) : visit(int8_t());
  case 16:
    return isUnsigned ? visit(uint16_t()) : visit(int16_t());
  case 32:
    return isUnsigned ? visit(uint32_t()) : visit(int32_t());
  default:
    return isUnsigned ? visit(uint64_t()) : visit(int64_t());
  }
}

HostTensor hostTensorOf(DenseElementsAttr elements) {
  auto type = cast<RankedTensorType>(elements.getType());
  Type element = type.getElementType();
  HostTensor tensor{type.getShape().vec(), {}};
  tensor.data.reserve(size_t(type.getNumElements()));
  if (element.isInteger(1)) {
    for (bool value : elements.getValues<bool>())
      tensor.data.push_back(value);
  } else if (element.isF16() || element.isBF16()) {
    for (const APFloat &value : elements.getValues<APFloat>())
      tensor.data.push_back(value.convertToDouble());
  } else {
    withNumber(element, [&](auto zero) {
      for (auto value : elements.getValues<decltype(zero)>())
        tensor.data.push_back(double(value));
    });
  }
  return tensor;
}

template <typename T> static T fromDouble(double value) {
  if constexpr (std::is_floating_point_v<T>)
    return T(value);
  if (std::isnan(value))
    return T(0);
  // 2^63 and 2^64 are doubles; the largest integers below them are not.
  if (value >= std::ldexp(1.0, std::numeric_limits<T>::digits))
    return std::numeric_limits<T>::max();
  if (value <= double(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return T(value);
}

DenseElementsAttr elementsOf(const HostTensor &tensor, RankedTensorType type) {
  Type element = type.getElementType();
  if (element.isInteger(1)) {
    SmallVector<bool> values;
    for (double value : tensor.data)
      values.push_back(value != 0);
    return DenseElementsAttr::get(type, values);
  }
  if (auto floating = dyn_cast<FloatType>(element); floating && (element.isF16() || element.isBF16())) {
    SmallVector<APFloat> values;
    for (double number : tensor.data) {
      APFloat value(number);
      bool losesInfo = false;
      value.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
      values.push_back(value);
    }
    return DenseElementsAttr::get(type, values);
  }
  DenseElementsAttr result;
  withNumber(element, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> values;
    values.reserve(tensor.data.size());
    for (double value : tensor.data)
      values.push_back(fromDouble<T>(value));
    result = DenseElementsAttr::get(type, ArrayRef<T>(values));
  });
  return result;
}

std::string bytesOf(DenseElementsAttr elements) {
  Type element = elements.getElementType();
  size_t count = size_t(elements.getNumElements());
  if (element.isInteger(1)) {
    std::string bytes;
    bytes.reserve(count);
    for (bool value : elements.getValues<bool>())
      bytes.push_back(char(value));
    return bytes;
  }
  ArrayRef<char> raw = elements.getRawData();
  std::string bytes;
  bytes.reserve(count * size_t(elementBytes(element)));
  for (size_t copies = elements.isSplat() ? count : 1; copies > 0; --copies)
    bytes.append(raw.data(), raw.size());
  return bytes;
}

DenseElementsAttr elementsOfBytes(ArrayRef<char> bytes, RankedTensorType type) {
  if (!type.getElementType().isInteger(1))
    return DenseElementsAttr::getFromRawBuffer(type, bytes);
  SmallVector<bool> values;
  for (char byte : bytes)
    values.push_back(byte != 0);
  return DenseElementsAttr::get(type, values);
}

} // namespace dg::ir
