// SPDX-License-Identifier: Apache-2.0
// Operators on quantized numbers. Products of 8-bit integers are summed in f64, which is exact up to 2^53.
#include "ir/onnx/NodeTable.h"
#include "ir/onnx/Products.h"

using namespace mlir;

namespace dg::ir::onnx_import {

/// A scale or zero point along the node's axis, in a shape that broadcasts to the input.
static Value alongAxis(Node &node, Value value, RankedTensorType input) {
  if (!value || tensorOf(value).getRank() == 0)
    return value;
  if (tensorOf(value).getNumElements() == 1)
    return node.reshape(value, {});
  auto dim = node.dimension(node.integer("axis", 1), input.getRank());
  if (!dim)
    return {};
  SmallVector<int64_t> shape(size_t(input.getRank()), 1);
  shape[size_t(*dim)] = tensorOf(value).getNumElements();
  return node.reshape(value, shape);
}

/// round(x / scale) + zero, held within `type`.
static Value quantized(Node &node, Value x, Value scale, Value zero, Type type) {
  Value steps = node.op("round", {node.op("div", {x, scale})});
  if (!steps)
    return {};
  if (zero)
    steps = node.op("add", {steps, node.cast(zero, tensorOf(steps).getElementType())});
  unsigned width = type.getIntOrFloatBitWidth();
  bool isUnsigned = type.isUnsignedInteger();
  double least = isUnsigned ? 0 : -std::ldexp(1.0, int(width) - 1),
         most = std::ldexp(1.0, int(width) - (isUnsigned ? 0 : 1)) - 1;
  return node.cast(node.op("clip", {steps}, {node.attr("min", least), node.attr("max", most)}), type);
}

static Results quantizeLinear(Node &node) {
  Value x = node.input(0), scale = node.input(1), zero = node.optionalInput(2);
  if (!x || !scale)
    return {};
  Type type = zero ? tensorOf(zero).getElementType() : IntegerType::get(node.context(), 8, IntegerType::Unsigned);
  if (!isa<IntegerType>(type)) {
    node.reject() << "quantizes to " << type << ", expected integers";
    return {};
  }
  return {quantized(node, node.cast(x, tensorOf(scale).getElementType()), alongAxis(node, scale, tensorOf(x)),
                    alongAxis(node, zero, tensorOf(x)), type)};
}

static Results dequantizeLinear(Node &node) {
  Value x = node.input(0), scale = node.input(1), zero = node.optionalInput(2);
  if (!x || !scale)
    return {};
  RankedTensorType type = tensorOf(x);
  Type element = tensorOf(scale).getElementType();
  Value number = node.cast(x, element);
  if (zero)
    number = node.op("sub", {number, node.cast(alongAxis(node, zero, type), element)});
  return {node.op("mul", {number, alongAxis(node, scale, type)})};
}

static Results dynamicQuantizeLinear(Node &node) {
  Value x = node.input(0);
  if (!x)
    return {};
  SmallVector<int64_t> all;
  for (int64_t dim = 0; dim < tensorOf(x).getRank(); ++dim)
    all.push_back(dim);
  Value none = node.scalarLike(0, x);
  Value most = node.op("max", {node.op("reduce_max", {x}, {node.attr("dims", all)}), none});
  Value least = node.op("min", {node.op("reduce_min", {x}, {node.attr("dims", all)}), none});
  Value scale = node.op("div", {node.op("sub", {most, least}), node.scalarLike(255, x)});
  Type u8 = IntegerType::get(node.context(), 8, IntegerType::Unsigned);
  Value zero = quantized(node, node.op("neg", {least}), scale, {}, u8);
  return {quantized(node, x, scale, zero, u8), scale, zero};
}

/// x - zero in f64; null stays null.
static Value shifted(Node &node, Value x, Value zero) {
  Type f64 = node.builder().getF64Type();
  Value number = node.cast(x, f64);
  return zero ? node.op("sub", {number, node.cast(zero, f64)}) : number;
}

/// A zero point for each row of the left matrix is a column.
static Value columnOf(Node &node, Value zero) {
  return zero && tensorOf(zero).getRank() == 1 && tensorOf(zero).getDimSize(0) > 1
             ? node.reshape(zero, {tensorOf(zero).getDimSize(0), 1})
             : zero;
}

static Results matmulInteger(Node &node) {
  Value a = shifted(node, node.input(0), columnOf(node, node.optionalInput(2)));
  Value b = shifted(node, node.input(1), node.optionalInput(3));
  return {node.cast(matrixProduct(node, a, b), node.builder().getI32Type())};
}

static Results convInteger(Node &node) {
  Value x = shifted(node, node.input(0), node.optionalInput(2));
  Value weight = shifted(node, node.input(1), node.optionalInput(3));
  return {node.cast(convolution(node, x, weight, {}), node.builder().getI32Type())};
}

/// The product in numbers, then quantized again: y = product · sa · sb / sy + zy.
static Value requantized(Node &node, Value product, Value scaleA, Value scaleB, Value scaleY, Value zeroY) {
  Type f64 = node.builder().getF64Type();
  if (!zeroY)
    return {};
  Value number = node.op("mul", {product, node.op("mul", {node.cast(scaleA, f64), node.cast(scaleB, f64)})});
  return quantized(node, number, node.cast(scaleY, f64), zeroY, tensorOf(zeroY).getElementType());
}

static Results qlinearMatmul(Node &node) {
  Value a = shifted(node, node.input(0), columnOf(node, node.input(2))),
        b = shifted(node, node.input(3), node.input(5));
  return {requantized(node, matrixProduct(node, a, b), columnOf(node, node.input(1)), node.input(4), node.input(6),
                      node.input(7))};
}

static Results qlinearConv(Node &node) {
  auto perChannel = [&](Value value, int64_t dims) {
    if (!value || tensorOf(value).getNumElements() == 1)
      return value ? node.reshape(value, {}) : value;
    SmallVector<int64_t> shape(size_t(dims), 1);
    shape[0] = tensorOf(value).getNumElements();
    return node.reshape(value, shape);
  };
  Value weight = node.input(3);
  if (!weight)
    return {};
  int64_t rank = tensorOf(weight).getRank();
  if (rank < 3) {
    node.reject() << "has weights of type " << tensorOf(weight) << ", expected [channels, channels, …]";
    return {};
  }
  Value x = shifted(node, node.input(0), node.input(2));
  Value product = convolution(node, x, shifted(node, weight, perChannel(node.input(5), rank)), {});
  if (Value bias = node.optionalInput(8))
    product = node.op("add", {product, node.cast(perChannel(bias, rank - 1), node.builder().getF64Type())});
  return {requantized(node, product, node.input(1), perChannel(node.input(4), rank - 1), node.input(6), node.input(7))};
}

void addQuantizationNodes(NodeTable &table) {
  table["QuantizeLinear"] = quantizeLinear;
  table["DequantizeLinear"] = dequantizeLinear;
  table["DynamicQuantizeLinear"] = dynamicQuantizeLinear;
  table["MatMulInteger"] = matmulInteger;
  table["ConvInteger"] = convInteger;
  table["QLinearMatMul"] = qlinearMatmul;
  table["QLinearConv"] = qlinearConv;
}

} // namespace dg::ir::onnx_import
