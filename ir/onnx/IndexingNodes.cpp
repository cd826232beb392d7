// SPDX-License-Identifier: Apache-2.0
// Operators that read and write at places given by integers, and that sample at other places.
#include "ir/dialect/Elements.h"
#include "ir/onnx/NodeTable.h"

using namespace mlir;

namespace dg::ir::onnx_import {

/// dg.`op` along the node's axis.
static Results alongAxis(Node &node, StringRef op, ArrayRef<Value> operands, ArrayRef<NamedAttribute> more = {}) {
  if (llvm::is_contained(operands, Value()))
    return {};
  auto dim = node.dimension(node.integer("axis", 0), tensorOf(operands[0]).getRank());
  if (!dim)
    return {};
  SmallVector<NamedAttribute> attributes(more);
  attributes.push_back(node.attr("dim", *dim));
  return {node.op(op, operands, attributes)};
}

static Results gather(Node &node) {
  // What dg-from-torch notes of an embedding with padding_idx.
  if (int64_t row = 0; !StringRef(node.metadata("dg.padding_idx")).getAsInteger(10, row))
    return {node.op("embedding", {node.input(0), node.input(1)}, {node.attr("padding", row)})};
  return alongAxis(node, "gather", {node.input(0), node.input(1)});
}
static Results gatherElements(Node &node) { return alongAxis(node, "gather_elements", {node.input(0), node.input(1)}); }
static Results scatterElements(Node &node) {
  return alongAxis(node, "scatter_elements", {node.input(0), node.input(1), node.input(2)},
                   {node.attr("reduction", StringRef(node.text("reduction", "none")))});
}

static Results gatherNd(Node &node) {
  return {
      node.op("gather_nd", {node.input(0), node.input(1)}, {node.attr("batch_dims", node.integer("batch_dims", 0))})};
}

static Results scatterNd(Node &node) {
  return {node.op("scatter_nd", {node.input(0), node.input(1), node.input(2)},
                  {node.attr("reduction", StringRef(node.text("reduction", "none")))})};
}

static Results oneHot(Node &node) {
  Value indices = node.input(0), values = node.input(2);
  auto depth = node.neededNumber(1, "depth");
  if (!indices || !values || !depth)
    return {};
  if (tensorOf(values).getShape() != ArrayRef<int64_t>{2}) {
    node.reject() << "has values of type " << tensorOf(values) << ", expected two: off and on";
    return {};
  }
  auto dim = node.dimension(node.integer("axis", -1), tensorOf(indices).getRank() + 1);
  if (!dim)
    return {};
  Type element = tensorOf(values).getElementType();
  indices = node.cast(indices, node.builder().getI64Type());
  Value hot = node.op("one_hot", {indices},
                      {node.attr("depth", int64_t(*depth)), node.attr("dim", *dim), node.attr("type", element)});
  auto pick = [&](int64_t index) {
    Value one = node.op("slice", {values},
                        {node.attr("starts", ArrayRef<int64_t>{index}), node.attr("sizes", ArrayRef<int64_t>{1})});
    return node.reshape(one, {});
  };
  // off + hot · (on - off)
  return {node.op("add", {pick(0), node.op("mul", {hot, node.op("sub", {pick(1), pick(0)})})})};
}

static Results reverseSequence(Node &node) {
  Value x = node.input(0), lengths = node.input(1);
  int64_t batch = node.integer("batch_axis", 1), time = node.integer("time_axis", 0);
  if (batch < 0 || batch > 1 || time != 1 - batch) {
    node.reject() << "has batch_axis " << batch << " and time_axis " << time << ", expected 0 and 1 or 1 and 0";
    return {};
  }
  return {node.op("reverse_sequence", {x, lengths}, {node.attr("batch_dim", batch)})};
}

//===- Resize ----------------------------------------------------------------------------------------------------===//

namespace {
struct Target {
  SmallVector<int64_t> sizes;
  SmallVector<double> scales; ///< empty: the ratios of the sizes
};
} // namespace

/// The sizes that scales lead to: one for each of `dims`, others stay.
static std::optional<Target> scaledBy(Node &node, RankedTensorType input, ArrayRef<int64_t> dims,
                                      ArrayRef<double> scales) {
  Target target;
  target.sizes.assign(input.getShape().begin(), input.getShape().end());
  target.scales.assign(size_t(input.getRank()), 1.0);
  if (scales.size() != dims.size() || llvm::any_of(scales, [](double scale) { return !(scale > 0 && scale < 1e6); })) {
    node.reject() << "has " << scales.size() << " scales for " << dims.size()
                  << " dimensions, expected as many numbers above 0";
    return std::nullopt;
  }
  for (auto [dim, scale] : llvm::zip(dims, scales)) {
    target.scales[size_t(dim)] = scale;
    target.sizes[size_t(dim)] = int64_t(std::floor(double(input.getDimSize(unsigned(dim))) * scale));
  }
  return target;
}

static Value resample(Node &node, Value x, const Target &target, SmallVector<NamedAttribute> attributes) {
  attributes.push_back(node.attr("sizes", target.sizes));
  if (!target.scales.empty())
    attributes.push_back(node.attr("scales", target.scales));
  return node.op("resize", {x}, attributes);
}

static Results resize(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  if (!type)
    return {};
  bool isFirst = node.version() < 11; // scales only, and floor
  unsigned scalesAt = isFirst ? 1 : 2;
  SmallVector<int64_t> axes = node.integers("axes");
  if (axes.empty())
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      axes.push_back(dim);
  auto dims = node.dimensions(axes, type.getRank());
  if (!dims)
    return {};
  std::optional<Target> target;
  bool hasSizes = !isFirst && node.hasInput(3);
  if (hasSizes) {
    auto sizes = node.neededIntegers(3, "sizes");
    if (!sizes)
      return {};
    if (sizes->size() != dims->size() || node.text("keep_aspect_ratio_policy", "stretch") != "stretch") {
      node.reject() << "has " << sizes->size() << " sizes for " << dims->size()
                    << " dimensions, expected as many, and to stretch";
      return {};
    }
    target.emplace();
    target->sizes.assign(type.getShape().begin(), type.getShape().end());
    for (auto [dim, size] : llvm::zip(*dims, *sizes))
      target->sizes[size_t(dim)] = size;
  } else {
    auto scales = node.neededNumbers(scalesAt, "scales");
    target = scales ? scaledBy(node, type, *dims, *scales) : std::nullopt;
  }
  if (!target)
    return {};
  std::string coordinates = isFirst ? "asymmetric" : node.text("coordinate_transformation_mode", "half_pixel");
  SmallVector<NamedAttribute> attributes = {
      node.attr("mode", StringRef(node.text("mode", "nearest"))), node.attr("coordinates", StringRef(coordinates)),
      node.attr("rounding", StringRef(isFirst ? "floor" : node.text("nearest_mode", "round_prefer_floor"))),
      node.attr("cubic_coefficient", node.number("cubic_coeff_a", -0.75)),
      node.attr("extrapolation", node.number("extrapolation_value", 0))};
  if (node.integer("exclude_outside", 0) != 0)
    attributes.push_back(node.flag("exclude_outside"));
  if (node.integer("antialias", 0) != 0)
    attributes.push_back(node.flag("antialias"));
  if (coordinates == "tf_crop_and_resize") {
    auto roi = node.neededNumbers(1, "roi");
    if (!roi)
      return {};
    attributes.push_back(node.attr("roi", ArrayRef<double>(*roi)));
  }
  return {resample(node, x, *target, attributes)};
}

static Results upsample(Node &node) {
  Value x = node.input(0);
  RankedTensorType type = typeOf(x);
  if (!type)
    return {};
  std::optional<SmallVector<double>> scales;
  if (node.version() >= 9)
    scales = node.neededNumbers(1, "scales");
  else
    scales = node.numbers("scales");
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    dims.push_back(dim);
  auto target = scales ? scaledBy(node, type, dims, *scales) : std::nullopt;
  if (!target)
    return {};
  std::string mode = node.text("mode", "nearest");
  return {resample(node, x, *target,
                   {node.attr("mode", StringRef(mode)), node.attr("coordinates", StringRef("asymmetric")),
                    node.attr("rounding", StringRef("floor"))})};
}

void addIndexingNodes(NodeTable &table) {
  table["Gather"] = gather;
  table["GatherElements"] = gatherElements;
  table["ScatterElements"] = scatterElements;
  table["Scatter"] = scatterElements;
  table["GatherND"] = gatherNd;
  table["ScatterND"] = scatterNd;
  table["OneHot"] = oneHot;
  table["ReverseSequence"] = reverseSequence;
  table["Resize"] = resize;
  table["Upsample"] = upsample;
}

} // namespace dg::ir::onnx_import
