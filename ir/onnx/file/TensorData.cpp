// SPDX-License-Identifier: Apache-2.0
#include "ir/onnx/file/TensorData.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/Elements.h"

#include "llvm/Support/MathExtras.h"

#include <bit>
#include <cstring>

using namespace mlir;

static_assert(std::endian::native == std::endian::little, "ONNX files are little-endian");

namespace dg::ir::onnx_import {

Type elementTypeOf(MLIRContext *context, int32_t dataType) {
  auto integer = [&](unsigned width, bool isSigned = true) -> Type {
    return IntegerType::get(context, width, isSigned ? IntegerType::Signless : IntegerType::Unsigned);
  };
  switch (dataType) {
  case onnx::TensorProto::FLOAT:
    return Float32Type::get(context);
  case onnx::TensorProto::DOUBLE:
    return Float64Type::get(context);
  case onnx::TensorProto::FLOAT16:
    return Float16Type::get(context);
  case onnx::TensorProto::BFLOAT16:
    return BFloat16Type::get(context);
  case onnx::TensorProto::BOOL:
    return integer(1);
  case onnx::TensorProto::INT8:
    return integer(8);
  case onnx::TensorProto::INT16:
    return integer(16);
  case onnx::TensorProto::INT32:
    return integer(32);
  case onnx::TensorProto::INT64:
    return integer(64);
  case onnx::TensorProto::UINT8:
    return integer(8, false);
  case onnx::TensorProto::UINT16:
    return integer(16, false);
  case onnx::TensorProto::UINT32:
    return integer(32, false);
  case onnx::TensorProto::UINT64:
    return integer(64, false);
  default:
    return {};
  }
}

std::string nameOfDataType(int32_t dataType) {
  if (onnx::TensorProto::DataType_IsValid(dataType))
    return onnx::TensorProto::DataType_Name(onnx::TensorProto::DataType(dataType));
  return "number " + std::to_string(dataType);
}

template <typename T, typename Numbers> static std::string packed(const Numbers &numbers) {
  std::string bytes(size_t(numbers.size()) * sizeof(T), '\0');
  char *to = bytes.data();
  for (auto number : numbers) {
    T value = T(number);
    std::memcpy(to, &value, sizeof(T));
    to += sizeof(T);
  }
  return bytes;
}

/// The numbers of a tensor without raw bytes: each type has its field.
static std::string packedNumbers(const onnx::TensorProto &tensor) {
  switch (tensor.data_type()) {
  case onnx::TensorProto::FLOAT:
    return packed<float>(tensor.float_data());
  case onnx::TensorProto::DOUBLE:
    return packed<double>(tensor.double_data());
  case onnx::TensorProto::INT64:
    return packed<int64_t>(tensor.int64_data());
  case onnx::TensorProto::UINT64:
    return packed<uint64_t>(tensor.uint64_data());
  case onnx::TensorProto::UINT32:
    return packed<uint32_t>(tensor.uint64_data());
  case onnx::TensorProto::INT32:
    return packed<int32_t>(tensor.int32_data());
  case onnx::TensorProto::INT16:
  case onnx::TensorProto::UINT16:
  case onnx::TensorProto::FLOAT16:
  case onnx::TensorProto::BFLOAT16:
    return packed<uint16_t>(tensor.int32_data());
  default: // one byte each: INT8, UINT8, BOOL
    return packed<uint8_t>(tensor.int32_data());
  }
}

FailureOr<ArrayRef<char>> TensorReader::readExternal(Location location, const onnx::TensorProto &tensor) {
  std::string name;
  int64_t offset = 0, length = -1;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    bool isGood = true;
    if (entry.key() == "location")
      name = entry.value();
    else if (entry.key() == "offset")
      isGood = !StringRef(entry.value()).getAsInteger(10, offset);
    else if (entry.key() == "length")
      isGood = !StringRef(entry.value()).getAsInteger(10, length) && length >= 0;
    if (!isGood)
      return emitError(location) << "tensor '" << tensor.name() << "' has external data with " << entry.key() << " '"
                                 << entry.value() << "', expected a whole number";
  }
  return external.read(location, name, offset, length);
}

FailureOr<TensorData> TensorReader::read(Location location, const onnx::TensorProto &tensor) {
  Type element = elementTypeOf(location.getContext(), tensor.data_type());
  if (!element)
    return emitError(location) << "tensor '" << tensor.name() << "' has elements of type "
                               << nameOfDataType(tensor.data_type()) << ", expected numbers or booleans";
  if (tensor.has_segment())
    return emitError(location) << "tensor '" << tensor.name() << "' is one segment of several, which is not supported";
  constexpr int64_t maxRank = 32;
  int64_t bytesNeeded = elementBytes(element);
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  bool isGood = shape.size() <= maxRank;
  for (int64_t size : shape)
    isGood = isGood && size >= 0 && !llvm::MulOverflow(bytesNeeded, size, bytesNeeded);
  if (!isGood)
    return emitError(location) << "tensor '" << tensor.name() << "' has a shape of " << shape.size()
                               << " dimensions that no tensor can have";
  FailureOr<ArrayRef<char>> bytes = ArrayRef<char>();
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    bytes = readExternal(location, tensor);
  else if (tensor.has_raw_data())
    bytes = ArrayRef<char>(tensor.raw_data().data(), tensor.raw_data().size());
  else
    bytes = keep(packedNumbers(tensor));
  if (failed(bytes))
    return failure();
  if (int64_t(bytes->size()) != bytesNeeded)
    return emitError(location) << "tensor '" << tensor.name() << "' has " << bytes->size()
                               << " bytes of data, expected " << bytesNeeded << " for its shape and type "
                               << nameOfDataType(tensor.data_type());
  return TensorData{RankedTensorType::get(shape, element), *bytes};
}

DenseElementsAttr elementsOf(const TensorData &tensor) { return elementsOfBytes(tensor.bytes, tensor.type); }

} // namespace dg::ir::onnx_import
