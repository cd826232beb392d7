// SPDX-License-Identifier: Apache-2.0
// GridSample and RoiAlign: images read at places that the model computes, made of gathers and weights, so that
// gradients reach the image and the places.
#include "ir/onnx/NodeTable.h"

#include <limits>

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
  /// `otherwise` where it is no number or infinite.
  Number finiteOr(double otherwise) const {
    if (!value)
      return {node, {}};
    Value isFinite = node->op("compare", {apply("abs").value, number(std::numeric_limits<double>::infinity()).value},
                              {node->attr("predicate", StringRef("lt"))});
    return {node, node->op("select", {isFinite, value, number(otherwise).value})};
  }
  Number shaped(ArrayRef<int64_t> shape) const { return {node, node->reshape(value, shape)}; }
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

namespace {
/// The shapes and modes of a GridSample.
struct Grid {
  RankedTensorType image, places; ///< [n, c, h, w], [n, h, w, 2]
  std::string mode, padding;
  bool isAligned;

  explicit Grid(Node &node, Value image, Value grid)
      : image(tensorOf(image)), places(tensorOf(grid)),
        mode(node.text("mode", node.version() < 20 ? "bilinear" : "linear")),
        padding(node.text("padding_mode", "zeros")), isAligned(node.integer("align_corners", 0) != 0) {}

  bool isNearest() const { return mode == "nearest"; }
  bool isCubic() const { return mode == "bicubic" || mode == "cubic"; }
  bool isLinear() const { return mode == "bilinear" || mode == "linear"; }
  int64_t samples() const { return image.getDimSize(0); }
  int64_t count() const { return places.getDimSize(1) * places.getDimSize(2); }
  Axis axis(unsigned dim) const {
    int64_t size = image.getDimSize(dim);
    return {size, isAligned ? 0 : -0.5, double(size) - (isAligned ? 1 : 0.5), padding};
  }
  bool hasKnownForm() const {
    return image.getRank() == 4 && places.getRank() == 4 && places.getShape().back() == 2 &&
           places.getDimSize(0) == image.getDimSize(0) && image.getDimSize(2) >= 1 && image.getDimSize(3) >= 1 &&
           (isNearest() || isCubic() || isLinear()) &&
           (padding == "zeros" || padding == "border" || padding == "reflection");
  }
};
} // namespace

/// Coordinate `which` of every place, in pixels of the axis: [n, p]. One that is not finite is at the image's edge, as
/// ONNX Runtime and PyTorch (for NaN) have it.
static Number coordinate(Node &node, const Grid &grid, Value places, int64_t which, const Axis &axis) {
  SmallVector<int64_t> starts = {0, 0, 0, which}, sizes(grid.places.getShape());
  sizes.back() = 1;
  Value part = node.op("slice", {places}, {node.attr("starts", starts), node.attr("sizes", sizes)});
  Number unit = {&node, node.cast(node.reshape(part, {grid.samples(), grid.count()}), grid.image.getElementType())};
  double size = double(axis.size);
  Number at = grid.isAligned ? (unit + 1) * ((size - 1) / 2) : (unit + 1) * (size / 2) - 0.5;
  at = at.finiteOr(axis.least);
  // Cubic weights follow the place itself; only the pixels around it are moved inside.
  return grid.isCubic() ? at : axis.inside(grid.isNearest() ? at.apply("round") : at);
}

/// The image between the pixels around each place: [n, c, p].
static Number interpolated(Node &node, const Grid &grid, Value image, Number x, Number y) {
  Axis down = grid.axis(2), across = grid.axis(3);
  Number left = x.apply("floor"), top = y.apply("floor"), dx = x - left, dy = y - top;
  SmallVector<Number> columns = {1 - dx, dx}, rows = {1 - dy, dy};
  if (grid.isCubic()) {
    columns = cubicWeights(dx);
    rows = cubicWeights(dy);
  }
  double first = grid.isCubic() ? -1 : 0;
  Number sum{&node, {}};
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = 0; j < columns.size(); ++j) {
      Number part = pixels(node, image, left + (first + double(j)), top + (first + double(i)), across, down) *
                    (rows[i] * columns[j]).shaped({grid.samples(), 1, grid.count()});
      sum = sum.value ? sum + part : part;
    }
  return sum;
}

static Results gridSample(Node &node) {
  Value image = node.input(0), places = node.input(1);
  if (!image || !places)
    return {};
  Grid grid(node, image, places);
  if (!grid.hasKnownForm()) {
    node.reject() << "has an image of type " << grid.image << ", a grid of type " << grid.places << ", mode '"
                  << grid.mode << "' and padding_mode '" << grid.padding
                  << "', expected [n, c, h, w] with pixels, [n, h, w, 2], a mode that is linear, "
                  << "nearest or cubic, and padding with zeros, border or reflection";
    return {};
  }
  Axis down = grid.axis(2), across = grid.axis(3);
  Number x = coordinate(node, grid, places, 0, across), y = coordinate(node, grid, places, 1, down);
  Number found = grid.isNearest() ? pixels(node, image, x, y, across, down) : interpolated(node, grid, image, x, y);
  return {found.shaped({grid.samples(), grid.image.getDimSize(1), grid.places.getDimSize(1), grid.places.getDimSize(2)})
              .value};
}

/// 0, 1, … along dimension `dim` of three, as numbers.
static Number counting(Node &node, int64_t count, int64_t dim, Type element) {
  SmallVector<int64_t> shape(3, 1);
  shape[size_t(dim)] = count;
  return {&node, node.reshape(node.counting(count, element), shape)};
}

namespace {
/// The regions of a RoiAlign on one axis of the image, at `out` · `taps` places each.
struct Regions {
  Node &node;
  Value rois; ///< [regions, 4]
  int64_t taps;
  bool isHalf; ///< pixels have their middles at halves

  int64_t count() const { return tensorOf(rois).getDimSize(0); }

  /// One coordinate of all regions, in pixels: [regions, 1, 1].
  Number corner(int64_t which) const {
    Value part =
        node.op("slice", {rois},
                {node.attr("starts", ArrayRef<int64_t>{0, which}), node.attr("sizes", ArrayRef<int64_t>{count(), 1})});
    return Number{&node, part}.shaped({count(), 1, 1}) * node.number("spatial_scale", 1) - (isHalf ? 0.5 : 0);
  }

  /// The pixels before and after each place, the weight of the one after, and whether the place counts:
  /// [regions, out · taps].
  struct Places {
    Number low, high, share, counted;
  };
  /// Places of the axis that runs from corner `from` to corner `to`, of `size` pixels.
  Places places(int64_t from, int64_t to, int64_t out, int64_t size, Type element) const {
    Number start = corner(from), extent = corner(to) - start;
    if (!isHalf)
      extent = extent.with("max", extent.number(1));
    Number bin = extent * (1.0 / double(out));
    Number at = start + bin * counting(node, out, 1, element) +
                bin * ((counting(node, taps, 2, element) + 0.5) * (1.0 / double(taps)));
    at = at.shaped({count(), out * taps});
    Number counted = at.where("ge", -1) * at.where("le", double(size));
    at = at.clipped(0, double(size - 1));
    Number low = at.apply("floor"), high = (low + 1).clipped(0, double(size - 1));
    return {low, high, at - low, counted};
  }
};
} // namespace

/// Whether the attributes and types of a RoiAlign are ones that are known; rejects the node where they are not.
static bool checkRegions(Node &node, RankedTensorType image, RankedTensorType rois, StringRef places) {
  if (image.getRank() != 4 || image.getNumElements() < 1 || rois.getRank() != 2 || rois.getDimSize(1) != 4 ||
      node.text("mode", "avg") != "avg" || !(places == "half_pixel" || places == "output_half_pixel")) {
    node.reject() << "has an image of type " << image << ", regions of type " << rois << ", mode '"
                  << node.text("mode", "avg") << "' and coordinate_transformation_mode '" << places
                  << "', expected [n, c, h, w] with pixels, [regions, 4], avg, and half_pixel or output_half_pixel";
    return false;
  }
  int64_t outHeight = node.integer("output_height", 1), outWidth = node.integer("output_width", 1),
          taps = node.integer("sampling_ratio", 0);
  auto isCount = [](int64_t count) { return count >= 1 && count <= 1 << 16; };
  if (isCount(outHeight) && isCount(outWidth) && isCount(taps))
    return true;
  node.reject() << "has output_height " << outHeight << ", output_width " << outWidth << " and sampling_ratio " << taps
                << ", expected 1 to 65536 of each; a ratio of 0 follows from the regions, which are known only when "
                   "the model runs";
  return false;
}

/// The image [n, c, h, w] at the places of all regions, each pixel by its weight: [regions, rows, columns, c].
static Number sampled(Node &node, Value image, Value batch, const Regions::Places &rows,
                      const Regions::Places &columns) {
  RankedTensorType type = tensorOf(image);
  int64_t samples = type.getDimSize(0), channels = type.getDimSize(1), height = type.getDimSize(2),
          width = type.getDimSize(3);
  if (!rows.low.value || !columns.low.value)
    return {&node, {}};
  int64_t regions = tensorOf(rows.low.value).getDimSize(0), numRows = tensorOf(rows.low.value).getDimSize(1),
          numColumns = tensorOf(columns.low.value).getDimSize(1);
  Value table = node.reshape(node.op("transpose", {image}, {node.attr("permutation", ArrayRef<int64_t>{0, 2, 3, 1})}),
                             {samples * height * width, channels});
  Number sample = Number{&node, batch}.shaped({regions, 1, 1}).whole();
  Number sum{&node, {}};
  for (bool isLow : {true, false})
    for (bool isLeft : {true, false}) {
      Number y = (isLow ? rows.low : rows.high).shaped({regions, numRows, 1}),
             x = (isLeft ? columns.low : columns.high).shaped({regions, 1, numColumns});
      Number place = (sample * double(height) + y.whole()) * double(width) + x.whole();
      Number across = (isLow ? 1 - rows.share : rows.share) * rows.counted,
             down = (isLeft ? 1 - columns.share : columns.share) * columns.counted;
      Number weight = across.shaped({regions, numRows, 1}) * down.shaped({regions, 1, numColumns});
      Number part =
          Number{&node, node.op("embedding", {table, place.value})} * weight.shaped({regions, numRows, numColumns, 1});
      sum = sum.value ? sum + part : part;
    }
  return sum;
}

static Results roiAlign(Node &node) {
  Value image = node.input(0), rois = node.input(1), batch = node.input(2);
  if (!image || !rois || !batch)
    return {};
  std::string mode =
      node.version() < 16 ? "output_half_pixel" : node.text("coordinate_transformation_mode", "half_pixel");
  RankedTensorType type = tensorOf(image);
  if (!checkRegions(node, type, tensorOf(rois), mode))
    return {};
  int64_t outHeight = node.integer("output_height", 1), outWidth = node.integer("output_width", 1),
          taps = node.integer("sampling_ratio", 0);
  Regions regions{node, rois, taps, mode == "half_pixel"};
  Type element = type.getElementType();
  Number sum = sampled(node, image, batch, regions.places(1, 3, outHeight, type.getDimSize(2), element),
                       regions.places(0, 2, outWidth, type.getDimSize(3), element));
  Value taken = sum.shaped({regions.count(), outHeight, taps, outWidth, taps, type.getDimSize(1)}).value;
  taken = node.op("reduce_sum", {taken}, {node.attr("dims", ArrayRef<int64_t>{2, 4})});
  taken = node.op("scale", {taken}, {node.attr("factor", 1.0 / double(taps * taps))});
  return {node.op("transpose", {taken}, {node.attr("permutation", ArrayRef<int64_t>{0, 3, 1, 2})})};
}

void addSamplingNodes(NodeTable &table) {
  table["GridSample"] = gridSample;
  table["RoiAlign"] = roiAlign;
}

} // namespace dg::ir::onnx_import
