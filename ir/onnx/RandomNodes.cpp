// SPDX-License-Identifier: Apache-2.0
// Operators that draw random numbers. A node's own seed is not asked: the numbers follow from the seed of the run and
// from the node, so that every plan draws the same ones.
#include "ir/dialect/Elements.h"
#include "ir/onnx/NodeTable.h"

using namespace mlir;

namespace dg::ir::onnx_import {

/// The dimension in which a value has its samples: the first that has some rows for each; -1 where none has.
static int64_t sampleDim(Node &node, RankedTensorType type) {
  if (node.batch() < 1)
    return type.getRank() > 0 ? 0 : -1;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.getDimSize(unsigned(dim)) > 0 && type.getDimSize(unsigned(dim)) % node.batch() == 0)
      return dim;
  return -1;
}

static Value drawn(Node &node, StringRef op, RankedTensorType type, ArrayRef<NamedAttribute> attributes) {
  SmallVector<NamedAttribute> all(attributes);
  all.push_back(node.attr("type", Type(type)));
  all.push_back(node.attr("batch_dim", node.isTraining() ? sampleDim(node, type) : int64_t(-1)));
  return node.op(op, {}, all);
}

/// The type that attribute `dtype` names, else the input's.
static Type drawnElement(Node &node, Type otherwise) {
  if (!node.hasAttribute("dtype"))
    return otherwise;
  int64_t dtype = node.integer("dtype", 1);
  Type element = elementTypeOf(node.context(), int(dtype));
  if (!element)
    node.reject() << "draws elements of type " << nameOfDataType(int(dtype)) << ", which is not supported";
  return element;
}

/// Uniform from low to high, or normal around a mean; of a shape in the node, or that of an input.
static NodeFunction source(bool isNormal, bool isLike) {
  return [=](Node &node) -> Results {
    Type element = node.builder().getF32Type();
    SmallVector<int64_t> shape = node.integers("shape");
    if (isLike) {
      Value like = node.input(0);
      if (!like)
        return {};
      shape.assign(tensorOf(like).getShape().begin(), tensorOf(like).getShape().end());
      element = isa<FloatType>(tensorOf(like).getElementType()) ? tensorOf(like).getElementType() : element;
    }
    element = drawnElement(node, element);
    if (!element)
      return {};
    if (!isa<FloatType>(element) || llvm::any_of(shape, [](int64_t size) { return size < 0; })) {
      node.reject() << "draws elements of type " << element
                    << ", expected floats in a shape of sizes that are not negative";
      return {};
    }
    auto type = RankedTensorType::get(shape, element);
    if (isNormal)
      return {drawn(node, "random_normal", type,
                    {node.attr("mean", node.number("mean", 0)), node.attr("deviation", node.number("scale", 1))})};
    return {drawn(node, "random_uniform", type,
                  {node.attr("low", node.number("low", 0)), node.attr("high", node.number("high", 1))})};
  };
}

/// 1 with the probability that the input says.
static Results bernoulli(Node &node) {
  Value x = node.input(0);
  if (!x)
    return {};
  Type element = drawnElement(node, tensorOf(x).getElementType());
  if (!element)
    return {};
  Value unit = drawn(node, "random_uniform", tensorOf(x), {});
  return {node.cast(node.op("compare", {unit, x}, {node.attr("predicate", StringRef("lt"))}), element)};
}

/// `--train` drops, however the file was exported; evaluation and inference do not, unless `--training-mode` keeps the
/// file's own mode, which may be known only when the model runs.
static Results dropout(Node &node) {
  Value x = node.input(0);
  if (!x)
    return {};
  Type element = tensorOf(x).getElementType(), i1 = node.builder().getI1Type();
  bool isNew = node.version() >= 12;
  if (node.isTraining()) {
    std::optional<double> ratio = isNew ? std::optional<double>(0.5) : node.number("ratio", 0.5);
    if (isNew && node.hasInput(1))
      ratio = node.neededNumber(1, "ratio");
    if (!ratio)
      return {};
    return {node.op("dropout", {x}, {node.attr("rate", *ratio), node.attr("batch_dim", sampleDim(node, tensorOf(x)))})};
  }
  // The mask: bools since version 10, elements of the input's type before.
  Type maskElement = node.version() >= 10 ? i1 : element;
  auto whole = [&]() -> Results {
    return {x, node.op("expand", {node.scalar(1, maskElement)}, {node.attr("shape", tensorOf(x).getShape())})};
  };
  if (!node.keepsTrainingMode())
    return whole();
  bool dropsAlways = node.version() < 7 && node.integer("is_test", 0) == 0;
  Value drops = isNew && node.hasInput(2) ? node.reshape(node.input(2), {}) : node.scalar(dropsAlways, i1);
  Value ratio = isNew && node.hasInput(1) ? node.cast(node.reshape(node.input(1), {}), element)
                                          : node.scalar(isNew ? 0.5 : node.number("ratio", 0.5), element);
  if (!drops || !ratio)
    return {};
  std::optional<DenseElementsAttr> known = constantOf(drops);
  if (known && hostTensorOf(*known).data[0] == 0)
    return whole();
  Value unit = drawn(node, "random_uniform", tensorOf(x), {});
  Value isKept = node.op("compare", {unit, ratio}, {node.attr("predicate", StringRef("ge"))});
  isKept = node.op("logical_or", {isKept, node.op("logical_not", {drops})});
  Value one = node.scalar(1, element);
  // Where all are dropped, no factor is right, but an infinite one would make 0 · x no number.
  Value isPart = node.op("compare", {ratio, one}, {node.attr("predicate", StringRef("lt"))});
  Value share = node.op("select", {node.op("logical_and", {drops, isPart}), node.op("sub", {one, ratio}), one});
  Value factor = node.op("div", {one, share});
  return {node.op("mul", {x, node.op("mul", {node.cast(isKept, element), factor})}), node.cast(isKept, maskElement)};
}

void addRandomNodes(NodeTable &table) {
  table["RandomUniform"] = source(/*isNormal=*/false, /*isLike=*/false);
  table["RandomUniformLike"] = source(/*isNormal=*/false, /*isLike=*/true);
  table["RandomNormal"] = source(/*isNormal=*/true, /*isLike=*/false);
  table["RandomNormalLike"] = source(/*isNormal=*/true, /*isLike=*/true);
  table["Bernoulli"] = bernoulli;
  table["Dropout"] = dropout;
}

} // namespace dg::ir::onnx_import
