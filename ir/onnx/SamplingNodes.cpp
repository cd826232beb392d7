// SPDX-License-Identifier: Apache-2.0
// GridSample and RoiAlign: images read at places that the model computes, made of gathers and weights, so that
// gradients reach the image and the places.
#include "ir/onnx/NodeTable.h"

using namespace mlir;

namespace dg::ir::onnx_import {

namespace {
/// Elementwise arithmetic of a node that reads like its formula; a null value stays null.
struct Number {
  Node *node;
  Value value;

  Number with(StringRef op, Number other) const { return {node, node->op(op, {value, other.value})}; }
  Number apply(StringRef op) const { return {node, node->op(op, {value})}; }
  Number number(double constant) const { return {node, node->scalarLike(constant, value)}; }
  /// As an integer.
  Number whole() const { return {node, node->cast(value, node->builder().getI64Type())}; }
  /// 1 where the comparison holds, else 0.
  Number where(StringRef predicate, double constant) const {
    if (!value)
      return {node, {}};
    Value holds = node->op("compare", {value, number(constant).value}, {node->attr("predicate", predicate)});
    return {node, node->cast(holds, tensorOf(value).getElementType())};
  }
  Number clipped(double least, double most) const { return with("max", number(least)).with("min", number(most)); }
  friend Number operator+(Number a, Number b) { return a.with("add", b); }
  friend Number operator-(Number a, Number b) { return a.with("sub", b); }
  friend Number operator*(Number a, Number b) { return a.with("mul", b); }
  friend Number operator+(Number a, double b) { return a + a.number(b); }
  friend Number operator-(Number a, double b) { return a - a.number(b); }
  friend Number operator-(double a, Number b) { return b.number(a) - b; }
  friend Number operator*(Number a, double b) { return a * a.number(b); }
};

/// One of the two axes of the image.
struct Axis {
  int64_t size;
  double least, most; ///< the edges of the image
  std::string padding;

  /// As a ball between two walls.
  Number reflected(Number at) const {
    double range = most - least;
    if (range <= 0)
      return at * 0.0;
    Number place = (at - least).with("mod", at.number(2 * range));
    return place.with("min", 2 * range - place) + least;
  }
  /// Where a place beyond the edges is taken to.
  Number inside(Number at) const {
    if (padding == "border")
      return at.clipped(0, double(size - 1));
    return padding == "reflection" ? reflected(at) : at;
  }
  /// 0 for a whole place beyond the edges, if such ones do not count.
  Number counted(Number whole) const { return whole.where("ge", 0) * whole.where("le", double(size - 1)); }
};
} // namespace

/// The image [n, c, h, w] at whole places [n, p]: [n, c, p].
static Number pixels(Node &node, Value image, Number x, Number y, const Axis &across, const Axis &down) {
  if (!image || !x.value || !y.value)
    return {&node, {}};
  RankedTensorType type = tensorOf(image);
  int64_t samples = type.getDimSize(0), channels = type.getDimSize(1), count = tensorOf(x.value).getDimSize(1);
  Number column = across.inside(x).clipped(0, double(across.size - 1)),
         row = down.inside(y).clipped(0, double(down.size - 1));
  // In integers: elements of 16 bits do not tell the places of a large image apart.
  Number place = row.whole() * double(across.size) + column.whole();
  Value index = node.reshape(place.value, {samples, 1, count});
  index = node.op("expand", {index}, {node.attr("shape", ArrayRef<int64_t>{samples, channels, count})});
  Value flat = node.reshape(image, {samples, channels, across.size * down.size});
  Number found{&node, node.op("gather_elements", {flat, index}, {node.attr("dim", int64_t(2))})};
  if (across.padding != "zeros")
    return found;
  Number counted = across.counted(x) * down.counted(y);
  return found * Number{&node, node.reshape(counted.value, {samples, 1, count})};
}

/// Keys' convolution kernel with a = -0.75, for the four places around one.
static SmallVector<Number> cubicWeights(Number t) {
  constexpr double a = -0.75;
  auto near = [](Number s) { return ((s * (a + 2) - (a + 3)) * s) * s + 1; };
  auto far = [](Number s) { return ((s * a - 5 * a) * s + 8 * a) * s - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

static Results gridSample(Node &node) {
  Value image = node.input(0), grid = node.input(1);
  if (!image || !grid)
    return {};
  RankedTensorType type = tensorOf(image), places = tensorOf(grid);
  std::string mode = node.text("mode", node.version() < 20 ? "bilinear" : "linear"),
              padding = node.text("padding_mode", "zeros");
  bool isNearest = mode == "nearest", isCubic = mode == "bicubic" || mode == "cubic",
       isLinear = mode == "bilinear" || mode == "linear";
  if (type.getRank() != 4 || places.getRank() != 4 || places.getShape().back() != 2 ||
      places.getDimSize(0) != type.getDimSize(0) || type.getDimSize(2) < 1 || type.getDimSize(3) < 1 ||
      !(isNearest || isCubic || isLinear) || !(padding == "zeros" || padding == "border" || padding == "reflection")) {
    node.reject() << "has an image of type " << type << ", a grid of type " << places << ", mode '" << mode
                  << "' and padding_mode '" << padding
                  << "', expected [n, c, h, w] with pixels, [n, h, w, 2], a mode that is linear, "
                  << "nearest or cubic, and padding with zeros, border or reflection";
    return {};
  }
  int64_t samples = type.getDimSize(0), channels = type.getDimSize(1),
          count = places.getDimSize(1) * places.getDimSize(2);
  bool isAligned = node.integer("align_corners", 0) != 0;
  auto axisOf = [&](int64_t size) {
    return Axis{size, isAligned ? 0 : -0.5, double(size) - (isAligned ? 1 : 0.5), padding};
  };
  Axis down = axisOf(type.getDimSize(2)), across = axisOf(type.getDimSize(3));
  auto coordinate = [&](int64_t which, const Axis &axis) {
    SmallVector<int64_t> starts = {0, 0, 0, which}, sizes(places.getShape());
    sizes.back() = 1;
    Value part = node.op("slice", {grid}, {node.attr("starts", starts), node.attr("sizes", sizes)});
    Number unit = {&node, node.cast(node.reshape(part, {samples, count}), type.getElementType())};
    double size = double(axis.size);
    Number at = isAligned ? (unit + 1) * ((size - 1) / 2) : (unit + 1) * (size / 2) - 0.5;
    return axis.inside(isNearest ? at.apply("round") : at);
  };
  Number x = coordinate(0, across), y = coordinate(1, down);
  auto perChannel = [&](Number weight) {
    return Number{&node, weight.value ? node.reshape(weight.value, {samples, 1, count}) : Value()};
  };
  Number sum{&node, {}};
  if (isNearest) {
    sum = pixels(node, image, x, y, across, down);
  } else {
    Number left = x.apply("floor"), top = y.apply("floor"), dx = x - left, dy = y - top;
    SmallVector<Number> columns = {1 - dx, dx}, rows = {1 - dy, dy};
    if (isCubic) {
      columns = cubicWeights(dx);
      rows = cubicWeights(dy);
    }
    double first = isCubic ? -1 : 0;
    for (size_t i = 0; i < rows.size(); ++i)
      for (size_t j = 0; j < columns.size(); ++j) {
        Number part = pixels(node, image, left + (first + double(j)), top + (first + double(i)), across, down) *
                      perChannel(rows[i] * columns[j]);
        sum = sum.value ? sum + part : part;
      }
  }
  return {node.reshape(sum.value, {samples, channels, places.getDimSize(1), places.getDimSize(2)})};
}

/// 0, 1, … along dimension `dim` of three, as numbers.
static Number counting(Node &node, int64_t count, int64_t dim, Type element) {
  SmallVector<int64_t> shape(3, 1);
  shape[size_t(dim)] = count;
  return {&node, node.reshape(node.counting(count, element), shape)};
}

static Results roiAlign(Node &node) {
  Value image = node.input(0), rois = node.input(1), batch = node.input(2);
  if (!image || !rois || !batch)
    return {};
  RankedTensorType type = tensorOf(image);
  int64_t outHeight = node.integer("output_height", 1), outWidth = node.integer("output_width", 1),
          taps = node.integer("sampling_ratio", 0);
  std::string places =
      node.version() < 16 ? "output_half_pixel" : node.text("coordinate_transformation_mode", "half_pixel");
  bool isHalf = places == "half_pixel";
  if (type.getRank() != 4 || type.getNumElements() < 1 || tensorOf(rois).getRank() != 2 ||
      tensorOf(rois).getDimSize(1) != 4 || node.text("mode", "avg") != "avg" ||
      !(isHalf || places == "output_half_pixel")) {
    node.reject() << "has an image of type " << type << ", regions of type " << tensorOf(rois) << ", mode '"
                  << node.text("mode", "avg") << "' and coordinate_transformation_mode '" << places
                  << "', expected [n, c, h, w] with pixels, [regions, 4], avg, and half_pixel or output_half_pixel";
    return {};
  }
  auto isCount = [](int64_t count) { return count >= 1 && count <= 1 << 16; };
  if (!isCount(outHeight) || !isCount(outWidth) || !isCount(taps)) {
    node.reject() << "has output_height " << outHeight << ", output_width " << outWidth << " and sampling_ratio "
                  << taps
                  << ", expected 1 to 65536 of each; a ratio of 0 follows from the regions, which are known only when "
                     "the model runs";
    return {};
  }
  Type element = type.getElementType();
  int64_t samples = type.getDimSize(0), channels = type.getDimSize(1), height = type.getDimSize(2),
          width = type.getDimSize(3), regions = tensorOf(rois).getDimSize(0);
  double scale = node.number("spatial_scale", 1), offset = isHalf ? 0.5 : 0;
  auto corner = [&](int64_t which) {
    Value part =
        node.op("slice", {rois},
                {node.attr("starts", ArrayRef<int64_t>{0, which}), node.attr("sizes", ArrayRef<int64_t>{regions, 1})});
    return Number{&node, node.reshape(part, {regions, 1, 1})} * scale - offset;
  };
  /// Low and high place, and the weight of the high one, of each sample: [regions, out · taps] by one axis.
  struct Samples {
    Number low, high, share, counted;
  };
  auto sample = [&](int64_t from, int64_t to, int64_t out, int64_t size) {
    Number start = corner(from), extent = corner(to) - start;
    if (!isHalf)
      extent = extent.with("max", extent.number(1));
    Number bin = extent * (1.0 / double(out));
    Number at = start + bin * counting(node, out, 1, element) +
                bin * ((counting(node, taps, 2, element) + 0.5) * (1.0 / double(taps)));
    at = {&node, at.value ? node.reshape(at.value, {regions, out * taps}) : Value()};
    Number counted = at.where("ge", -1) * at.where("le", double(size));
    at = at.clipped(0, double(size - 1));
    Number low = at.apply("floor"), high = (low + 1).clipped(0, double(size - 1));
    return Samples{low, high, at - low, counted};
  };
  Samples rows = sample(1, 3, outHeight, height), columns = sample(0, 2, outWidth, width);
  Value table = node.reshape(node.op("transpose", {image}, {node.attr("permutation", ArrayRef<int64_t>{0, 2, 3, 1})}),
                             {samples * height * width, channels});
  int64_t numRows = outHeight * taps, numColumns = outWidth * taps;
  auto spread = [&](Number value, bool isRow) {
    return Number{&node, value.value ? node.reshape(value.value, isRow ? ArrayRef<int64_t>{regions, numRows, 1}
                                                                       : ArrayRef<int64_t>{regions, 1, numColumns})
                                     : Value()};
  };
  Number image0 = Number{&node, node.reshape(batch, {regions, 1, 1})}.whole();
  Number sum{&node, {}};
  for (bool isLow : {true, false})
    for (bool isLeft : {true, false}) {
      Number y = spread(isLow ? rows.low : rows.high, true), x = spread(isLeft ? columns.low : columns.high, false);
      Number place = (image0 * double(height) + y.whole()) * double(width) + x.whole();
      Number weight = spread((isLow ? 1 - rows.share : rows.share) * rows.counted, true) *
                      spread((isLeft ? 1 - columns.share : columns.share) * columns.counted, false);
      Number found{&node, node.op("embedding", {table, place.value})};
      Number part =
          found * Number{&node, weight.value ? node.reshape(weight.value, {regions, numRows, numColumns, 1}) : Value()};
      sum = sum.value ? sum + part : part;
    }
  Value taken = node.reshape(sum.value, {regions, outHeight, taps, outWidth, taps, channels});
  taken = node.op("reduce_sum", {taken}, {node.attr("dims", ArrayRef<int64_t>{2, 4})});
  taken = node.op("scale", {taken}, {node.attr("factor", 1.0 / double(taps * taps))});
  return {node.op("transpose", {taken}, {node.attr("permutation", ArrayRef<int64_t>{0, 3, 1, 2})})};
}

void addSamplingNodes(NodeTable &table) {
  table["GridSample"] = gridSample;
  table["RoiAlign"] = roiAlign;
}

} // namespace dg::ir::onnx_import
