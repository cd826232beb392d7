// SPDX-License-Identifier: Apache-2.0
// Operators that reduce dimensions.
#include "ir/onnx/NodeTable.h"

#include <numeric>

using namespace mlir;

namespace dg::ir::onnx_import {

struct Reduction {
  SmallVector<int64_t> dims;
  bool keep = true;
};

/// The axes: an attribute, or an input from version `sinceInput` on; all dimensions where left out, none with
/// noop_with_empty_axes.
static std::optional<Reduction> reductionOf(Node &node, int64_t rank, int64_t sinceInput) {
  Reduction reduction;
  reduction.keep = node.integer("keepdims", 1) != 0;
  SmallVector<int64_t> axes = node.integers("axes");
  if (node.version() >= sinceInput && node.hasInput(1)) {
    auto given = node.neededIntegers(1, "axes");
    if (!given)
      return std::nullopt;
    axes = *given;
  }
  auto dims = node.dimensions(axes, rank);
  if (!dims)
    return std::nullopt;
  reduction.dims = *dims;
  if (dims->empty() && node.integer("noop_with_empty_axes", 0) == 0) {
    reduction.dims.resize(size_t(rank));
    std::iota(reduction.dims.begin(), reduction.dims.end(), 0);
  }
  llvm::sort(reduction.dims);
  return reduction;
}

static Value reduce(Node &node, StringRef op, Value x, const Reduction &reduction) {
  if (reduction.dims.empty())
    return x;
  SmallVector<NamedAttribute> attributes = {node.attr("dims", reduction.dims)};
  if (reduction.keep)
    attributes.push_back(node.flag("keep"));
  return node.op(op, {x}, attributes);
}

/// Axes are an input from version `sinceInput` on.
static NodeFunction reduction(const char *op, int64_t sinceInput = 18) {
  return [=](Node &node) -> Results {
    Value x = node.input(0);
    auto how = x ? reductionOf(node, tensorOf(x).getRank(), sinceInput) : std::nullopt;
    if (!how)
      return {};
    return {reduce(node, op, x, *how)};
  };
}

/// The dimension of the node's axis.
static std::optional<int64_t> axisOf(Node &node, Value x, int64_t otherwise) {
  return x ? node.dimension(node.integer("axis", otherwise), tensorOf(x).getRank()) : std::nullopt;
}

static NodeFunction argument(const char *op) {
  return [op](Node &node) -> Results {
    Value x = node.input(0);
    auto dim = axisOf(node, x, 0);
    if (!dim)
      return {};
    SmallVector<NamedAttribute> attributes = {node.attr("axis", *dim)};
    if (node.integer("keepdims", 1) != 0)
      attributes.push_back(node.flag("keep"));
    if (node.integer("select_last_index", 0) != 0)
      attributes.push_back(node.flag("last"));
    return {node.op(op, {x}, attributes)};
  };
}

/// Sums along one dimension, or, where only the running model knows which, along the one that it names: no shape
/// depends on it. A number that is no dimension means the last.
static Results cumulativeSum(Node &node) {
  Value x = node.input(0);
  if (!x)
    return {};
  int64_t rank = tensorOf(x).getRank();
  auto along = [&](int64_t dim) {
    SmallVector<NamedAttribute> attributes = {node.attr("axis", dim)};
    for (const char *flag : {"exclusive", "reverse"})
      if (node.integer(flag, 0) != 0)
        attributes.push_back(node.flag(flag));
    return node.op("cumsum", {x}, attributes);
  };
  if (!node.hasInput(1) || node.constantInput(1)) {
    auto given = node.neededInteger(1, "axis");
    auto dim = given ? node.dimension(*given, rank) : std::nullopt;
    return {dim ? along(*dim) : Value()};
  }
  Value chosen = along(rank - 1), number = node.reshape(node.input(1), {});
  for (int64_t dim = rank - 2; dim >= 0; --dim) {
    auto is = [&](int64_t which) {
      return node.op("compare", {number, node.scalarLike(double(which), number)},
                     {node.attr("predicate", StringRef("eq"))});
    };
    chosen = node.op("select", {node.op("logical_or", {is(dim), is(dim - rank)}), along(dim), chosen});
  }
  return {chosen};
}

static Results topK(Node &node) {
  Value x = node.input(0);
  auto dim = axisOf(node, x, -1);
  std::optional<int64_t> k = node.version() < 10 ? node.integer("k", 0) : node.neededInteger(1, "k");
  if (!dim || !k)
    return {};
  SmallVector<NamedAttribute> attributes = {node.attr("axis", *dim), node.attr("k", *k)};
  if (node.integer("largest", 1) == 0)
    attributes.push_back(node.flag("smallest"));
  return node.ops("top_k", {x}, attributes, 2);
}

void addReductionNodes(NodeTable &table) {
  table["ReduceSum"] = reduction("reduce_sum", 13);
  table["ReduceMean"] = reduction("reduce_mean");
  table["ReduceMax"] = reduction("reduce_max");
  table["ReduceMin"] = reduction("reduce_min");
  table["ReduceProd"] = reduction("reduce_prod");
  table["ReduceL1"] = reduction("reduce_l1");
  table["ReduceL2"] = reduction("reduce_l2");
  table["ReduceSumSquare"] = reduction("reduce_sum_square");
  table["ReduceLogSum"] = reduction("reduce_log_sum");
  table["ReduceLogSumExp"] = reduction("reduce_log_sum_exp");
  table["ArgMax"] = argument("arg_max");
  table["ArgMin"] = argument("arg_min");
  table["CumSum"] = cumulativeSum;
  table["TopK"] = topK;
}

} // namespace dg::ir::onnx_import
