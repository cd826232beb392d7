// SPDX-License-Identifier: Apache-2.0
// Windows and Fourier transforms. Their matrices are constants.
#include "ir/dialect/Elements.h"
#include "ir/onnx/NodeTable.h"
#include "ir/onnx/Products.h"

#include <numbers>
#include <numeric>

using namespace mlir;

namespace dg::ir::onnx_import {

/// a0 - a1 cos(2πn/N) + a2 cos(4πn/N)
static NodeFunction window(double a0, double a1, double a2) {
  return [=](Node &node) -> Results {
    auto size = node.neededInteger(0, "size");
    Type type = elementTypeOf(node.context(), int32_t(node.integer("output_datatype", 1)));
    if (!size || !type)
      return {};
    constexpr int64_t mostElements = 1 << 24;
    if (*size < 1 || *size > mostElements) {
      node.reject() << "has size " << *size << ", expected 1 to " << mostElements;
      return {};
    }
    double period = double(node.integer("periodic", 1) != 0 ? *size : *size - 1);
    HostTensor values{{*size}, {}};
    for (int64_t n = 0; n < *size; ++n) {
      double angle = 2 * std::numbers::pi * double(n) / period;
      values.data.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
    }
    return {node.literal(elementsOf(values, RankedTensorType::get(values.shape, type)))};
  };
}

/// [inputs · 2, outputs · 2]: real and imaginary parts in turn, times the result's; inputs of one part have no second
/// row.
static Value fourierMatrix(Node &node, int64_t inputs, int64_t parts, int64_t length, int64_t outputs, bool isInverse,
                           Type type) {
  HostTensor matrix{{inputs * parts, outputs * 2}, {}};
  matrix.data.resize(size_t(inputs * parts * outputs * 2));
  for (int64_t in = 0; in < inputs; ++in)
    for (int64_t out = 0; out < outputs; ++out) {
      double angle = 2 * std::numbers::pi * double(in * out % length) / double(length) * (isInverse ? 1 : -1);
      double scale = isInverse ? 1 / double(length) : 1, real = std::cos(angle) * scale,
             imaginary = std::sin(angle) * scale;
      auto at = [&](int64_t part, int64_t result) -> double & {
        return matrix.data[size_t(((in * parts + part) * outputs + out) * 2 + result)];
      };
      at(0, 0) = real, at(0, 1) = imaginary;
      if (parts == 2)
        at(1, 0) = -imaginary, at(1, 1) = real;
    }
  return node.literal(elementsOf(matrix, RankedTensorType::get(matrix.shape, type)));
}

static Results dft(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  if (!type)
    return {};
  int64_t rank = type.getRank();
  std::optional<int64_t> axis = node.integer("axis", 1);
  if (node.version() >= 20)
    axis = node.hasInput(2) ? node.neededInteger(2, "axis") : std::optional<int64_t>(-2);
  auto dim = axis ? node.dimension(*axis, rank) : std::nullopt;
  if (!dim)
    return {};
  int64_t parts = type.getShape().back(), size = type.getDimSize(unsigned(*dim)), length = size;
  if (node.hasInput(1)) {
    auto given = node.neededInteger(1, "dft_length");
    if (!given)
      return {};
    length = *given;
  }
  constexpr int64_t mostPoints = 1024; // a matrix, not a fast transform
  if (*dim == rank - 1 || parts < 1 || parts > 2 || length < 1 || length > mostPoints) {
    node.reject() << "has an input of type " << type << " and " << length << " points along dimension " << *dim
                  << ", expected [batch, …, 1 or 2] and at most " << mostPoints << " points";
    return {};
  }
  int64_t used = std::min(size, length);
  if (used < size) { // longer signals are cut, shorter ones end with zeros, which add nothing
    SmallVector<int64_t> starts(size_t(rank), 0), sizes(type.getShape());
    sizes[size_t(*dim)] = used;
    x = node.op("slice", {x}, {node.attr("starts", starts), node.attr("sizes", sizes)});
  }
  int64_t outputs = node.integer("onesided", 0) != 0 ? length / 2 + 1 : length;
  // The transformed dimension next to the parts, both as one.
  SmallVector<int64_t> order;
  for (int64_t at = 0; at + 1 < rank; ++at)
    if (at != *dim)
      order.push_back(at);
  order.append({*dim, rank - 1});
  SmallVector<int64_t> shape, back(static_cast<size_t>(rank));
  for (int64_t at : ArrayRef(order).drop_back(2))
    shape.push_back(type.getDimSize(unsigned(at)));
  for (auto [place, at] : llvm::enumerate(order))
    back[size_t(at)] = int64_t(place);
  SmallVector<int64_t> flat(shape), result(shape);
  flat.push_back(used * parts);
  result.append({outputs, 2});
  Value turned = node.reshape(node.op("transpose", {x}, {node.attr("permutation", order)}), flat);
  Value product = matrixProduct(
      node, turned,
      fourierMatrix(node, used, parts, length, outputs, node.integer("inverse", 0) != 0, type.getElementType()));
  return {node.op("transpose", {node.reshape(product, result)}, {node.attr("permutation", back)})};
}

/// Frames of the signal, each times the window and transformed.
static Results stft(Node &node) {
  Value signal = node.input(0), windowValue = node.optionalInput(2);
  RankedTensorType type = typeOf(signal);
  auto step = node.neededInteger(1, "frame_step");
  if (!type || !step)
    return {};
  std::optional<int64_t> length;
  if (node.hasInput(3))
    length = node.neededInteger(3, "frame_length");
  else if (windowValue)
    length = tensorOf(windowValue).getNumElements();
  constexpr int64_t mostPoints = 1024;
  if (!length || *length < 1 || *length > mostPoints || *step < 1 || type.getRank() != 3 || type.getDimSize(2) < 1 ||
      type.getDimSize(2) > 2 || type.getDimSize(1) < *length) {
    if (!node.isRejected())
      node.reject() << "has a signal of type " << type << ", expected [batch, samples, 1 or 2] and frames of at most "
                    << mostPoints << " samples that fit it";
    return {};
  }
  int64_t batch = type.getDimSize(0), parts = type.getDimSize(2), frames = (type.getDimSize(1) - *length) / *step + 1;
  Type i64 = node.builder().getI64Type();
  Value first =
      node.op("mul", {node.reshape(node.counting(frames, i64), {frames, 1}), node.scalar(double(*step), i64)});
  Value places = node.op("add", {first, node.counting(*length, i64)});
  Value framed = node.op("gather", {signal, places}, {node.attr("dim", int64_t(1))});
  if (windowValue)
    framed = node.op("mul", {framed, node.reshape(windowValue, {*length, 1})});
  int64_t outputs = node.integer("onesided", 1) != 0 ? *length / 2 + 1 : *length;
  Value product = matrixProduct(node, node.reshape(framed, {batch, frames, *length * parts}),
                                fourierMatrix(node, *length, parts, *length, outputs, false, type.getElementType()));
  return {node.reshape(product, {batch, frames, outputs, 2})};
}

void addSignalNodes(NodeTable &table) {
  table["HannWindow"] = window(0.5, 0.5, 0);
  table["HammingWindow"] = window(25.0 / 46.0, 21.0 / 46.0, 0);
  table["BlackmanWindow"] = window(0.42, 0.5, 0.08);
  table["DFT"] = dft;
  table["STFT"] = stft;
}

} // namespace dg::ir::onnx_import
