// SPDX-License-Identifier: Apache-2.0
// Softmax and its kin, and operators that make mean and variance what they should be.
#include "ir/onnx/NodeTable.h"
#include "ir/onnx/Statistics.h"

#include <numeric>

using namespace mlir;

namespace dg::ir::onnx_import {

//===- Softmax ---------------------------------------------------------------------------------------------------===//

/// `make` of the value with dimension `dim` last, put back afterwards.
static Value withLast(Node &node, Value x, int64_t dim, llvm::function_ref<Value(Value)> make) {
  int64_t rank = tensorOf(x).getRank();
  if (dim == rank - 1)
    return make(x);
  SmallVector<int64_t> swap(static_cast<size_t>(rank));
  std::iota(swap.begin(), swap.end(), 0);
  std::swap(swap[size_t(dim)], swap[size_t(rank - 1)]);
  auto turned = [&](Value value) { return node.op("transpose", {value}, {node.attr("permutation", swap)}); };
  return turned(make(turned(x)));
}

/// Over one dimension since version 13; over all from the axis on before.
static NodeFunction softmaxLike(std::function<Value(Node &, Value)> overLast) {
  return [overLast](Node &node) -> Results {
    Value x = node.input(0);
    bool isOne = node.version() >= 13;
    RankedTensorType type = typeOf(x);
    auto dim = type ? node.dimension(node.integer("axis", isOne ? -1 : 1), type.getRank()) : std::nullopt;
    if (!dim)
      return {};
    if (isOne)
      return {withLast(node, x, *dim, [&](Value value) { return overLast(node, value); })};
    ArrayRef<int64_t> shape = type.getShape();
    auto product = [](ArrayRef<int64_t> sizes) {
      return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
    };
    SmallVector<int64_t> matrix = {product(shape.take_front(size_t(*dim))), product(shape.drop_front(size_t(*dim)))};
    return {node.reshape(overLast(node, node.reshape(x, matrix)), shape)};
  };
}

//===- Mean and variance -----------------------------------------------------------------------------------------===//

/// A vector of channels in the shape [1, c, 1, …].
static Value byChannel(Node &node, Value vector, int64_t rank) {
  if (!vector)
    return {};
  SmallVector<int64_t> shape(size_t(std::max<int64_t>(rank, 2)), 1);
  shape[1] = tensorOf(vector).getNumElements();
  return node.reshape(vector, shape);
}

static Value scaledAndShifted(Node &node, Value x, Value scale, Value bias) {
  x = node.op("mul", {x, scale});
  return bias ? node.op("add", {x, bias}) : x;
}

/// Of the batch at hand, and the running ones moved towards them.
static Results trainingBatchNorm(Node &node, Value x, double epsilon) {
  int64_t rank = tensorOf(x).getRank();
  SmallVector<int64_t> dims = {0};
  for (int64_t dim = 2; dim < rank; ++dim)
    dims.push_back(dim);
  Statistics own = statisticsOf(node, x, dims);
  double momentum = node.number("momentum", 0.9);
  auto moved = [&](Value running, Value current) {
    if (!running || !current)
      return Value();
    Value flat = node.reshape(current, tensorOf(running).getShape());
    return node.op("add", {node.op("scale", {running}, {node.attr("factor", momentum)}),
                           node.op("scale", {flat}, {node.attr("factor", 1 - momentum)})});
  };
  Value y = scaledAndShifted(node, normalized(node, x, own, epsilon), byChannel(node, node.input(1), rank),
                             byChannel(node, node.input(2), rank));
  return {y, moved(node.input(3), own.mean), moved(node.input(4), own.variance)};
}

/// `--train` needs the running statistics as state, whether the file was exported for training or for inference;
/// `--infer` uses them, unless `--training-mode` keeps those of the batch at hand.
static Results batchNorm(Node &node) {
  Value x = node.input(0);
  if (!x)
    return {};
  double epsilon = node.number("epsilon", 1e-5);
  auto norm = [&] {
    return node.op("batch_norm", {x, node.input(1), node.input(2), node.stateInput(3), node.stateInput(4)},
                   {node.attr("epsilon", epsilon), node.attr("momentum", 1 - node.number("momentum", 0.9))});
  };
  if (node.version() >= 14 && node.integer("training_mode", 0) != 0) {
    if (node.keepsTrainingMode())
      return trainingBatchNorm(node, x, epsilon);
    // A training moves the statistics by itself, and who reads the moved ones is refused; an inference leaves them.
    return node.isTraining() ? Results{norm()} : Results{norm(), node.stateInput(3), node.stateInput(4)};
  }
  if (node.hasOutput(1)) {
    node.reject() << "has outputs of training, which version " << node.version()
                  << " does not define well: export the model for inference";
    return {};
  }
  return {norm()};
}

static Results instanceNorm(Node &node) {
  Value x = node.input(0);
  if (!x)
    return {};
  int64_t rank = tensorOf(x).getRank();
  SmallVector<int64_t> dims;
  for (int64_t dim = 2; dim < rank; ++dim)
    dims.push_back(dim);
  Value y = normalized(node, x, statisticsOf(node, x, dims), node.number("epsilon", 1e-5));
  return {scaledAndShifted(node, y, byChannel(node, node.input(1), rank), byChannel(node, node.input(2), rank))};
}

/// Scale and bias are one for each group in version 18, one for each channel since 21.
static Results groupNorm(Node &node) {
  Value x = node.input(0);
  if (!x)
    return {};
  RankedTensorType type = tensorOf(x);
  int64_t groups = node.integer("num_groups", 1);
  if (type.getRank() < 2 || groups < 1 || groups > std::max<int64_t>(1, type.getDimSize(1)) ||
      type.getDimSize(1) % groups != 0) {
    node.reject() << "cuts the channels of an input of type " << type << " into " << groups << " groups";
    return {};
  }
  int64_t rows = type.getDimSize(0) * groups, each = type.getDimSize(1) / groups;
  Value flat = node.reshape(x, {rows, rows == 0 ? 0 : type.getNumElements() / rows});
  Value y = normalized(node, flat, statisticsOf(node, flat, {1}), node.number("epsilon", 1e-5));
  auto perChannel = [&](Value vector) {
    if (vector && tensorOf(vector).getNumElements() != type.getDimSize(1)) {
      Value spread =
          node.op("expand", {node.reshape(vector, {groups, 1})}, {node.attr("shape", ArrayRef<int64_t>{groups, each})});
      vector = node.reshape(spread, {groups * each});
    }
    return byChannel(node, vector, type.getRank());
  };
  return {
      scaledAndShifted(node, node.reshape(y, type.getShape()), perChannel(node.input(1)), perChannel(node.input(2)))};
}

static Results layerNorm(Node &node) {
  Value x = node.input(0), scale = node.input(1), bias = node.optionalInput(2);
  RankedTensorType type = typeOf(x);
  auto axis = type ? node.dimension(node.integer("axis", -1), type.getRank()) : std::nullopt;
  if (!axis || !scale)
    return {};
  double epsilon = node.number("epsilon", 1e-5);
  SmallVector<int64_t> dims;
  for (int64_t dim = *axis; dim < type.getRank(); ++dim)
    dims.push_back(dim);
  // The usual one is a kernel of its own.
  ArrayRef<int64_t> normalized = type.getShape().drop_front(size_t(*axis));
  bool isUsual = bias && !node.hasOutput(1) && !node.hasOutput(2) && tensorOf(scale).getShape() == normalized &&
                 tensorOf(bias).getShape() == normalized;
  if (isUsual && dims.size() == 1)
    return {node.op("layer_norm", {x, scale, bias}, {node.attr("epsilon", epsilon)})};
  if (isUsual)
    return {node.op("layer_norm", {x, scale, bias}, {node.attr("epsilon", epsilon), node.attr("axis", *axis)})};
  Statistics own = statisticsOf(node, x, dims);
  Value inverse = inverseDeviation(node, own.variance, epsilon);
  Value y = node.op("mul", {node.op("sub", {x, own.mean}), inverse});
  return {scaledAndShifted(node, y, scale, bias), own.mean, inverse};
}

static Results meanVarianceNorm(Node &node) {
  Value x = node.input(0);
  if (!x)
    return {};
  SmallVector<int64_t> axes = node.integers("axes");
  if (axes.empty())
    axes = {0, 2, 3};
  auto dims = node.dimensions(axes, tensorOf(x).getRank());
  if (!dims)
    return {};
  // As the operator's definition has it: (x - mean) / (deviation + 1e-9).
  Statistics own = statisticsOf(node, x, *dims);
  Value deviation = node.op("sqrt", {own.variance});
  deviation = node.op("add", {deviation, node.scalarLike(1e-9, deviation)});
  return {node.op("div", {node.op("sub", {x, own.mean}), deviation})};
}

/// x / (bias + alpha / size · Σ x² over neighbouring channels)^beta
static Results localResponseNorm(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  if (!type)
    return {};
  int64_t size = node.integer("size", 0);
  if (size < 1 || type.getRank() < 2) {
    node.reject() << "has size " << size << " for an input of type " << type << ", expected at least 1 and [n, c, …]";
    return {};
  }
  // Channels as the rows of an image, so that a pool sums over them.
  int64_t samples = type.getDimSize(0), channels = type.getDimSize(1);
  int64_t places = samples * channels == 0 ? 0 : type.getNumElements() / (samples * channels);
  Value square = node.reshape(node.op("mul", {x, x}), {samples, 1, channels, places});
  Value sum = node.op("avg_pool", {square},
                      {node.attr("kernel", ArrayRef<int64_t>{size, 1}), node.attr("strides", ArrayRef<int64_t>{1, 1}),
                       node.attr("padding", ArrayRef<int64_t>{(size - 1) / 2, 0, size / 2, 0}), node.flag("sum")});
  Value scaled = node.op("scale", {node.reshape(sum, type.getShape())},
                         {node.attr("factor", node.number("alpha", 1e-4) / double(size))});
  Value base = node.op("add", {scaled, node.scalarLike(node.number("bias", 1), scaled)});
  return {node.op("div", {x, node.op("pow", {base, node.scalarLike(node.number("beta", 0.75), base)})})};
}

static Results lpNorm(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  auto dim = type ? node.dimension(node.integer("axis", -1), type.getRank()) : std::nullopt;
  int64_t p = node.integer("p", 2);
  if (!dim)
    return {};
  if (p != 1 && p != 2) {
    node.reject() << "has p = " << p << ", expected 1 or 2";
    return {};
  }
  Value parts = p == 1 ? node.op("abs", {x}) : node.op("mul", {x, x});
  Value sum = node.op("reduce_sum", {parts}, {node.attr("dims", ArrayRef<int64_t>{*dim}), node.flag("keep")});
  return {node.op("div", {x, p == 1 ? sum : node.op("sqrt", {sum})})};
}

void addNormalizationNodes(NodeTable &table) {
  table["Softmax"] = softmaxLike([](Node &node, Value x) { return node.op("softmax", {x}); });
  table["LogSoftmax"] = softmaxLike([](Node &node, Value x) { return node.op("log_softmax", {x}); });
  table["Hardmax"] = softmaxLike([](Node &node, Value x) { return node.op("hardmax", {x}); });
  table["BatchNormalization"] = batchNorm;
  table["InstanceNormalization"] = instanceNorm;
  table["GroupNormalization"] = groupNorm;
  table["LayerNormalization"] = layerNorm;
  table["MeanVarianceNormalization"] = meanVarianceNorm;
  table["LRN"] = localResponseNorm;
  table["LpNormalization"] = lpNorm;
}

} // namespace dg::ir::onnx_import
