// SPDX-License-Identifier: Apache-2.0
// Convolutions and pools: operators that slide a window over the places of [n, c, …].
#include "ir/onnx/NodeTable.h"
#include "ir/onnx/Products.h"

#include <numeric>

using namespace mlir;

namespace dg::ir::onnx_import {

namespace {
/// The window of an operator: one entry for each dimension of places.
struct Window {
  SmallVector<int64_t> kernel, strides, dilations, low, high;
  SmallVector<int64_t> padding() const {
    SmallVector<int64_t> all(low);
    all.append(high);
    return all;
  }
};
} // namespace

/// So that no sum or product of sizes overflows.
constexpr int64_t mostSize = 1 << 24, mostPlaces = int64_t(1) << 32;

/// An attribute of as many numbers as `otherwise`, which stands for one that is left out; rejects the node where they
/// are not from `least` to `most`.
static std::optional<SmallVector<int64_t>> sizesOf(Node &node, StringRef name, ArrayRef<int64_t> otherwise,
                                                   int64_t least, int64_t most = mostSize) {
  SmallVector<int64_t> values = node.integers(name);
  if (values.empty())
    values.assign(otherwise.begin(), otherwise.end());
  if (values.size() == otherwise.size() &&
      llvm::all_of(values, [&](int64_t size) { return size >= least && size <= most; }))
    return values;
  node.reject() << "has " << values.size() << " numbers in '" << name << "', expected " << otherwise.size() << " from "
                << least << " to " << most;
  return std::nullopt;
}

/// Reads kernel_shape, strides, dilations, pads and auto_pad; `kernel` is what the weight says, empty for pools.
static std::optional<Window> windowOf(Node &node, RankedTensorType input, ArrayRef<int64_t> kernel) {
  Window window;
  size_t places = input.getRank() < 2 ? 0 : size_t(input.getRank() - 2);
  if (places < 1 || (!kernel.empty() && kernel.size() != places) ||
      llvm::any_of(input.getShape().drop_front(2), [](int64_t size) { return size > mostPlaces; })) {
    node.reject() << "has an input of type " << input << ", expected [n, c] and "
                  << (kernel.empty() ? std::string("one or more") : std::to_string(kernel.size()))
                  << " dimensions of at most " << mostPlaces << " places";
    return std::nullopt;
  }
  SmallVector<int64_t> ones(places, 1), zeros(2 * places, 0);
  if (kernel.empty() && node.integers("kernel_shape").empty()) {
    node.reject() << "has no kernel_shape, which the operator needs";
    return std::nullopt;
  }
  auto found = sizesOf(node, "kernel_shape", kernel.empty() ? ones : kernel, 1),
       strides = sizesOf(node, "strides", ones, 1), dilations = sizesOf(node, "dilations", ones, 1),
       pads = sizesOf(node, "pads", zeros, 0);
  if (!found || !strides || !dilations || !pads)
    return std::nullopt;
  window = {*found, *strides, *dilations, SmallVector<int64_t>(ArrayRef(*pads).take_front(places)),
            SmallVector<int64_t>(ArrayRef(*pads).drop_front(places))};
  std::string automatic = node.text("auto_pad", "NOTSET");
  if (automatic != "SAME_UPPER" && automatic != "SAME_LOWER")
    return window;
  for (size_t dim = 0; dim < places; ++dim) {
    int64_t size = input.getDimSize(unsigned(dim + 2)), stride = window.strides[dim];
    int64_t reach = (window.kernel[dim] - 1) * window.dilations[dim] + 1;
    int64_t total = std::max<int64_t>(0, ((size + stride - 1) / stride - 1) * stride + reach - size);
    window.low[dim] = automatic == "SAME_UPPER" ? total / 2 : (total + 1) / 2;
    window.high[dim] = total - window.low[dim];
  }
  return window;
}

Value convolution(Node &node, Value x, Value weight, Value bias) {
  if (!x || !weight)
    return {};
  if (tensorOf(weight).getRank() < 3) {
    node.reject() << "has a weight of type " << tensorOf(weight) << ", expected [out, in, …]";
    return {};
  }
  auto window = windowOf(node, tensorOf(x), tensorOf(weight).getShape().drop_front(2));
  if (!window)
    return {};
  SmallVector<Value> operands = {x, weight};
  if (bias)
    operands.push_back(bias);
  return node.op("conv", operands,
                 {node.attr("strides", window->strides), node.attr("padding", window->padding()),
                  node.attr("dilation", window->dilations), node.attr("groups", node.integer("group", 1))});
}

static Results conv(Node &node) { return {convolution(node, node.input(0), node.input(1), node.optionalInput(2))}; }

/// `output_shape` decides the padding; else the padding decides the shape.
static Results convTranspose(Node &node) {
  Value x = node.input(0), weight = node.input(1);
  if (!x || !weight)
    return {};
  if (tensorOf(weight).getRank() < 3) {
    node.reject() << "has a weight of type " << tensorOf(weight) << ", expected [in, out, …]";
    return {};
  }
  RankedTensorType type = tensorOf(x);
  auto window = windowOf(node, type, tensorOf(weight).getShape().drop_front(2));
  if (!window)
    return {};
  size_t places = window->kernel.size();
  auto added = sizesOf(node, "output_padding", SmallVector<int64_t>(places, 0), 0);
  SmallVector<int64_t> wanted = node.integers("output_shape");
  // Some files name batch and channels too.
  size_t named = wanted.size() == places + 2 ? places + 2 : places;
  if (!added || (!wanted.empty() && !sizesOf(node, "output_shape", SmallVector<int64_t>(named, 1), 1, mostPlaces)))
    return {};
  SmallVector<int64_t> extra = *added;
  if (!wanted.empty())
    wanted.erase(wanted.begin(), wanted.end() - ptrdiff_t(places));
  std::string automatic = node.text("auto_pad", "NOTSET");
  bool isSame = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
  for (size_t dim = 0; dim < places && (isSame || !wanted.empty()); ++dim) {
    int64_t size = type.getDimSize(unsigned(dim + 2)), stride = window->strides[dim];
    int64_t target = wanted.empty() ? size * stride : wanted[dim];
    int64_t total = stride * (size - 1) + extra[dim] + (window->kernel[dim] - 1) * window->dilations[dim] + 1 - target;
    if (total < 0) { // what no padding takes away is added
      extra[dim] -= total;
      total = 0;
    }
    window->low[dim] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
    window->high[dim] = total - window->low[dim];
  }
  SmallVector<Value> operands = {x, weight};
  if (Value bias = node.optionalInput(2))
    operands.push_back(bias);
  return {node.op("conv_transpose", operands,
                  {node.attr("strides", window->strides), node.attr("padding", window->padding()),
                   node.attr("dilation", window->dilations), node.attr("groups", node.integer("group", 1)),
                   node.attr("output_padding", extra)})};
}

/// The window as attributes of dg's pools.
static SmallVector<NamedAttribute> poolAttributes(Node &node, const Window &window) {
  SmallVector<NamedAttribute> attributes = {node.attr("kernel", window.kernel), node.attr("strides", window.strides),
                                            node.attr("padding", window.padding()),
                                            node.attr("dilation", window.dilations)};
  if (node.integer("ceil_mode", 0) != 0)
    attributes.push_back(node.flag("ceil"));
  return attributes;
}

/// From places in the image of a channel to places in the whole tensor, which ONNX counts; with storage_order 1 columns
/// before rows.
static Value globalPlaces(Node &node, Value places, RankedTensorType input) {
  int64_t size = 1;
  for (int64_t dim : input.getShape().drop_front(2))
    size *= dim;
  Type i64 = node.builder().getI64Type();
  if (node.integer("storage_order", 0) != 0) {
    if (input.getRank() != 4) {
      node.reject() << "has storage_order 1 for an input of type " << input << ", expected [n, c, h, w]";
      return {};
    }
    Value width = node.scalar(double(input.getDimSize(3)), i64), height = node.scalar(double(input.getDimSize(2)), i64);
    Value row = node.op("div", {places, width});
    Value column = node.op("sub", {places, node.op("mul", {row, width})});
    places = node.op("add", {node.op("mul", {column, height}), row});
  }
  SmallVector<int64_t> shape = {input.getDimSize(0), input.getDimSize(1)};
  Value channel = node.counting(shape[0] * shape[1], i64);
  shape.resize(size_t(input.getRank()), 1);
  Value start = node.op("mul", {node.reshape(channel, shape), node.scalar(double(size), i64)});
  return node.op("add", {places, start});
}

static Results maxPool(Node &node) {
  Value x = node.input(0);
  auto window = x ? windowOf(node, tensorOf(x), {}) : std::nullopt;
  if (!window)
    return {};
  SmallVector<NamedAttribute> attributes = poolAttributes(node, *window);
  // Pools are of floats, which hold small integers exactly.
  Type element = tensorOf(x).getElementType();
  if (isa<IntegerType>(element))
    x = node.cast(x, node.builder().getF32Type());
  Results results = {node.cast(node.op("max_pool", {x}, attributes), element)};
  if (node.hasOutput(1))
    results.push_back(globalPlaces(node, node.op("max_pool_indices", {x}, attributes), tensorOf(x)));
  return results;
}

static Results averagePool(Node &node) {
  Value x = node.input(0);
  auto window = x ? windowOf(node, tensorOf(x), {}) : std::nullopt;
  if (!window)
    return {};
  SmallVector<NamedAttribute> attributes = poolAttributes(node, *window);
  if (node.integer("count_include_pad", 0) != 0)
    attributes.push_back(node.flag("count_include_pad"));
  return {node.op("avg_pool", {x}, attributes)};
}

/// A number in version 1, a whole number since.
static std::optional<int64_t> normOf(Node &node) {
  int64_t p = node.version() < 2 ? int64_t(node.number("p", 2)) : node.integer("p", 2);
  if (p >= 1)
    return p;
  node.reject() << "has p = " << p << ", expected at least 1";
  return std::nullopt;
}

static Results lpPool(Node &node) {
  Value x = node.input(0);
  auto window = x ? windowOf(node, tensorOf(x), {}) : std::nullopt;
  auto p = normOf(node);
  if (!window || !p)
    return {};
  SmallVector<NamedAttribute> attributes = poolAttributes(node, *window);
  attributes.push_back(node.attr("p", *p));
  return {node.op("lp_pool", {x}, attributes)};
}

static Results globalLpPool(Node &node) {
  Value x = node.input(0);
  auto p = normOf(node);
  if (!x || !p)
    return {};
  if (tensorOf(x).getRank() < 3) {
    node.reject() << "has an input of type " << tensorOf(x) << ", expected [n, c, …] with places";
    return {};
  }
  return {node.op("lp_pool", {x}, {node.attr("kernel", tensorOf(x).getShape().drop_front(2)), node.attr("p", *p)})};
}

static NodeFunction globalPool(const char *op) {
  return [op](Node &node) -> Results { return {node.op(op, {node.input(0)})}; };
}

void addConvolutionNodes(NodeTable &table) {
  table["Conv"] = conv;
  table["ConvTranspose"] = convTranspose;
  table["MaxPool"] = maxPool;
  table["AveragePool"] = averagePool;
  table["LpPool"] = lpPool;
  table["GlobalLpPool"] = globalLpPool;
  table["GlobalAveragePool"] = globalPool("global_avg_pool");
  table["GlobalMaxPool"] = globalPool("global_max_pool");
}

} // namespace dg::ir::onnx_import
