// SPDX-License-Identifier: Apache-2.0
// Losses as operators: they may stand anywhere in a graph. (`dgc --loss` adds one of dg's own to a model.)
#include "ir/dialect/ElementTypes.h"
#include "ir/onnx/NodeTable.h"

using namespace mlir;

namespace dg::ir::onnx_import {

/// [n, c, …] with the classes last.
static Value classesLast(Node &node, Value x) {
  int64_t rank = tensorOf(x).getRank();
  SmallVector<int64_t> permutation = {0};
  for (int64_t dim = 2; dim < rank; ++dim)
    permutation.push_back(dim);
  permutation.push_back(1);
  return rank == 2 ? x : node.op("transpose", {x}, {node.attr("permutation", permutation)});
}

static Value classesSecond(Node &node, Value x) {
  int64_t rank = tensorOf(x).getRank();
  SmallVector<int64_t> permutation = {0, rank - 1};
  for (int64_t dim = 1; dim + 1 < rank; ++dim)
    permutation.push_back(dim);
  return rank == 2 ? x : node.op("transpose", {x}, {node.attr("permutation", permutation)});
}

/// Minus the log-probabilities [n, …, c] at the target classes, weighed and reduced.
static Value negativeLogLikelihood(Node &node, Value logProbabilities, Value target, Value weight) {
  if (!logProbabilities || !target)
    return {};
  RankedTensorType type = tensorOf(logProbabilities);
  Type element = type.getElementType();
  Value weights;
  double index = double(node.integer("ignore_index", 0));
  // A class that the target's type cannot hold is no position's.
  if (node.hasAttribute("ignore_index") && storedElement(index, tensorOf(target).getElementType()) == index) {
    // Ignored targets may be no classes at all: they look up class 0 and weigh nothing.
    Value ignored =
        node.op("compare", {target, node.scalarLike(index, target)}, {node.attr("predicate", StringRef("eq"))});
    target = node.op("select", {ignored, node.scalarLike(0, target), target});
    weights = node.cast(node.op("logical_not", {ignored}), element);
  }
  if (weight) {
    Value table = node.reshape(weight, {tensorOf(weight).getNumElements(), 1});
    Value own = target ? node.reshape(node.op("embedding", {table, target}), tensorOf(target).getShape()) : Value();
    weights = weights ? node.op("mul", {weights, own}) : own;
  }
  Value loss = node.op("neg", {node.op("pick", {logProbabilities, target})});
  if (weights)
    loss = node.op("mul", {loss, weights});
  std::string reduction = node.text("reduction", "mean");
  if (reduction == "none" || !loss)
    return loss;
  SmallVector<int64_t> all;
  for (int64_t dim = 0; dim < tensorOf(loss).getRank(); ++dim)
    all.push_back(dim);
  Value sum = node.op("reduce_sum", {loss}, {node.attr("dims", all)});
  if (reduction == "sum")
    return sum;
  Value count = weights ? node.op("reduce_sum", {weights}, {node.attr("dims", all)})
                        : node.scalar(double(tensorOf(loss).getNumElements()), element);
  return node.op("div", {sum, count});
}

/// Whether scores and targets are [n, c, …] and [n, …].
static bool checkShapes(Node &node, Value scores, Value target) {
  if (!scores || !target)
    return false;
  SmallVector<int64_t> expected(tensorOf(scores).getShape());
  if (expected.size() >= 2)
    expected.erase(expected.begin() + 1);
  if (tensorOf(scores).getRank() >= 2 && tensorOf(target).getShape() == ArrayRef(expected))
    return true;
  node.reject() << "has scores of type " << tensorOf(scores) << " and targets of type " << tensorOf(target)
                << ", expected [n, c, …] and [n, …]";
  return false;
}

static Results nllLoss(Node &node) {
  Value scores = node.input(0), target = node.input(1);
  if (!checkShapes(node, scores, target))
    return {};
  return {negativeLogLikelihood(node, classesLast(node, scores), target, node.optionalInput(2))};
}

static Results softmaxCrossEntropy(Node &node) {
  Value scores = node.input(0), target = node.input(1);
  if (!checkShapes(node, scores, target))
    return {};
  Value logProbabilities = node.op("log_softmax", {classesLast(node, scores)});
  Results results = {negativeLogLikelihood(node, logProbabilities, target, node.optionalInput(2))};
  if (node.hasOutput(1) && logProbabilities)
    results.push_back(classesSecond(node, logProbabilities));
  return results;
}

void addLossNodes(NodeTable &table) {
  table["NegativeLogLikelihoodLoss"] = nllLoss;
  table["SoftmaxCrossEntropyLoss"] = softmaxCrossEntropy;
}

} // namespace dg::ir::onnx_import
