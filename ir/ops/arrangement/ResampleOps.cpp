// SPDX-License-Identifier: Apache-2.0
// Ops whose elements are weighted sums of a few elements along each dimension. All of them are sparse matrices of
// constants, one for each dimension: resize in all its modes, and the sum of patches.
#include "ir/ops/arrangement/ResampleOps.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/ShardingRules.h"
#include "ir/rules/TypeInference.h"

#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace dg::ir {

//===- Sparse matrices -------------------------------------------------------------------------------------------===//

namespace {
/// Rows of (column, weight).
using SparseRows = std::vector<std::vector<std::pair<int64_t, double>>>;
} // namespace

static SparseRows rowsOf(ResampleOp op) {
  SparseRows rows(op.getOffsets().size() - 1);
  for (size_t row = 0; row < rows.size(); ++row)
    for (int64_t k = op.getOffsets()[row]; k < op.getOffsets()[row + 1]; ++k)
      rows[row].emplace_back(op.getPlaces()[k], op.getWeights()[k]);
  return rows;
}

static SparseRows transposed(const SparseRows &rows, int64_t numColumns) {
  SparseRows columns(numColumns);
  for (auto [row, entries] : llvm::enumerate(rows))
    for (auto [column, weight] : entries)
      columns[column].emplace_back(row, weight);
  return columns;
}

static bool isIdentity(const SparseRows &rows, int64_t numColumns) {
  for (auto [row, entries] : llvm::enumerate(rows))
    if (entries.size() != 1 || entries[0] != std::make_pair(int64_t(row), 1.0))
      return false;
  return int64_t(rows.size()) == numColumns;
}

static Value buildResample(OpBuilder &builder, Location loc, Value value, int64_t dim, const SparseRows &rows) {
  if (isIdentity(rows, tensorOf(value).getDimSize(dim)))
    return value;
  SmallVector<int64_t> offsets{0}, places;
  SmallVector<double> weights;
  for (const auto &row : rows) {
    for (auto [place, weight] : row) {
      places.push_back(place);
      weights.push_back(weight);
    }
    offsets.push_back(int64_t(places.size()));
  }
  return create<ResampleOp>(builder, loc, value, dim, offsets, places, weights);
}

static HostTensor multiply(const HostTensor &input, int64_t dim, const SparseRows &rows) {
  HostTensor result = input;
  result.shape[dim] = int64_t(rows.size());
  result.data.assign(result.numElements(), 0);
  int64_t inner = stridesOf(input.shape)[dim], size = input.shape[dim], outer = 1;
  for (int64_t i = 0; i < dim; ++i)
    outer *= input.shape[i];
  for (int64_t o = 0; o < outer; ++o)
    for (auto [row, entries] : llvm::enumerate(rows))
      for (auto [place, weight] : entries)
        for (int64_t i = 0; i < inner; ++i)
          result.data[(o * rows.size() + row) * inner + i] += weight * input.data[(o * size + place) * inner + i];
  return result;
}

//===- ResampleOp ------------------------------------------------------------------------------------------------===//

FailureOr<Type> ResampleOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  int64_t dim = op.getDim();
  if (dim < 0 || dim >= input.getRank() || input.isDynamicDim(dim))
    return reject("has dimension ", dim, " of ", input, ", expected one of known size");
  ArrayRef<int64_t> offsets = op.getOffsets(), places = op.getPlaces();
  bool fits = !offsets.empty() && offsets.front() == 0 && offsets.back() == int64_t(places.size()) &&
              llvm::is_sorted(offsets) && places.size() == op.getWeights().size() &&
              llvm::all_of(places, [&](int64_t place) { return place >= 0 && place < input.getDimSize(dim); });
  if (!fits)
    return reject("has offsets ", op.getOffsetsAttr(), ", ", places.size(), " places and ", op.getWeights().size(),
                  " weights for ", input,
                  ", expected rows of as many places, below the size of the dimension, as weights");
  bool isCopy = llvm::all_of(op.getWeights(), [](double weight) { return weight == 1; });
  for (size_t row = 0; isCopy && row + 1 < offsets.size(); ++row)
    isCopy = offsets[row + 1] - offsets[row] <= 1;
  if (!isa<FloatType>(input.getElementType()) && !isCopy)
    return reject("weighs ", input, ", expected floating-point elements, or weights of 1");
  SmallVector<int64_t> shape(input.getShape());
  shape[dim] = int64_t(offsets.size()) - 1;
  return RankedTensorType::get(shape, input.getElementType());
}

Gradients ResampleOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  SparseRows columns = transposed(rowsOf(*this), tensorOf(getInput()).getDimSize(getDim()));
  return SmallVector<Value>{buildResample(builder, getLoc(), grads[0], getDim(), columns)};
}

ShardingRule ResampleOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput());
  for (int64_t dim = 0; dim < input.getRank(); ++dim)
    if (dim != int64_t(getDim())) {
      int32_t factor = rule.addFactor(input.getDimSize(dim));
      rule.operands[0][dim].push_back(factor);
      rule.results[0][dim].push_back(factor);
    }
  return rule;
}

OpCost ResampleOp::getCost() {
  double others = double(tensorOf(getInput()).getNumElements()) / double(tensorOf(getInput()).getDimSize(getDim()));
  return {2 * others * double(getPlaces().size()), operandAndResultBytes(*this)};
}

void ResampleOp::compute(HostOperands operands, HostResults results) {
  results[0] = multiply(operands[0], getDim(), rowsOf(*this));
}

//===- ResizeOp --------------------------------------------------------------------------------------------------===//

FailureOr<Type> ResizeOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  size_t rank = size_t(input.getRank());
  if (!llvm::is_contained({"nearest", "linear", "cubic"}, op.getMode()))
    return reject("has mode \"", op.getMode(), "\", expected nearest, linear or cubic");
  if (!llvm::is_contained({"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                           "tf_crop_and_resize"},
                          op.getCoordinates()))
    return reject("has coordinates \"", op.getCoordinates(),
                  "\", expected half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, "
                  "asymmetric or tf_crop_and_resize");
  if (!llvm::is_contained({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}, op.getRounding()))
    return reject("has rounding \"", op.getRounding(),
                  "\", expected round_prefer_floor, round_prefer_ceil, floor or ceil");
  bool isCropped = op.getCoordinates() == "tf_crop_and_resize";
  if (op.getSizes().size() != rank || (op.getScales() && op.getScales()->size() != rank) ||
      isCropped != op.getRoi().has_value() || (op.getRoi() && op.getRoi()->size() != 2 * rank))
    return reject("resizes ", input, " to ", op.getSizesAttr(), " with scales ", op.getScalesAttr(), " and roi ",
                  op.getRoiAttr(), ", expected ", rank,
                  " of each, and a roi of twice as many with tf_crop_and_resize alone");
  if (op.getMode() != "nearest" && !isa<FloatType>(input.getElementType()))
    return reject("weighs ", input, " in mode \"", op.getMode(),
                  "\", expected floating-point elements or mode \"nearest\"");
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(op.getSizes())) {
    bool isBad = size < -1 || size == 0 || (size != -1 && input.getDimSize(dim) == 0) ||
                 (op.getScales() && (*op.getScales())[dim] <= 0);
    if (isBad || (size != -1 && input.isDynamicDim(dim)))
      return reject("resizes dimension ", dim, " of ", input, " to ", size,
                    ", expected a known size above 0, or -1 to keep it");
    shape.push_back(size == -1 ? input.getDimSize(dim) : size);
  }
  return RankedTensorType::get(shape, input.getElementType());
}

/// Where element `at` of the result lies in the input, as ONNX defines it.
static double coordinateOf(ResizeOp op, int64_t at, int64_t dim, int64_t size, int64_t newSize, double scale) {
  StringRef mode = op.getCoordinates();
  // ONNX counts with the size that the scale leads to, which may have a fraction.
  double width = scale * double(size), last = double(size - 1);
  if (mode == "align_corners")
    return width == 1 ? 0 : double(at) * last / (width - 1);
  if (mode == "asymmetric")
    return double(at) / scale;
  if (mode == "tf_crop_and_resize") {
    ArrayRef<double> roi = *op.getRoi();
    double start = roi[dim], end = roi[roi.size() / 2 + dim];
    return start * last + (width == 1 ? (end - start) * last / 2 : double(at) * (end - start) * last / (width - 1));
  }
  if (mode == "pytorch_half_pixel" && width == 1)
    return -0.5;
  double middle = (double(at) + 0.5) / scale - 0.5;
  return mode == "half_pixel_symmetric" ? double(size) / 2 * (1 - double(newSize) / width) + middle : middle;
}

/// The weights of neighbours first, first + 1, …, where `ratio` in (0, 1] is the distance from neighbour 0.
static std::vector<double> neighbourWeights(ResizeOp op, double ratio, double scale, int64_t &first) {
  first = 0;
  if (op.getMode() == "nearest") {
    StringRef rounding = op.getRounding();
    bool isUp = ratio == 1 || rounding == "ceil" || (rounding == "round_prefer_floor" && ratio > 0.5) ||
                (rounding == "round_prefer_ceil" && ratio >= 0.5);
    return isUp ? std::vector<double>{0, 1} : std::vector<double>{1, 0};
  }
  double shrink = op.getAntialias() ? std::min(scale, 1.0) : 1, a = op.getCubicCoefficient().convertToDouble();
  bool isLinear = op.getMode() == "linear";
  auto weigh = [&](double x) {
    x = std::abs(x);
    if (isLinear)
      return std::max(0.0, 1 - x);
    return x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0;
  };
  first = int64_t(std::floor((isLinear ? -1 : -2) / shrink)) + 1;
  std::vector<double> weights;
  double sum = 0;
  for (int64_t i = first; i < 2 - first; ++i) {
    weights.push_back(weigh((double(i) - ratio) * shrink));
    sum += weights.back();
  }
  for (double &weight : weights)
    weight /= sum;
  return weights;
}

/// What a dimension of the result is made of; a row without places is outside of the image.
static SparseRows resizeRows(ResizeOp op, int64_t dim) {
  int64_t size = tensorOf(op.getInput()).getDimSize(dim), newSize = tensorOf(op.getResult()).getDimSize(dim);
  double scale = op.getScales() ? (*op.getScales())[dim] : double(newSize) / double(size);
  bool isCropped = op.getCoordinates() == "tf_crop_and_resize";
  SparseRows rows(newSize);
  for (int64_t at = 0; at < newSize; ++at) {
    double x = coordinateOf(op, at, dim, size, newSize, scale);
    if (isCropped && (x < 0 || x > double(size - 1)))
      continue;
    // A whole coordinate is the right one of its neighbours, as in ONNX.
    int64_t base = int64_t(std::ceil(x)) - 1, first;
    std::vector<double> weights = neighbourWeights(op, x - double(base), scale, first);
    double sum = 0;
    for (auto [i, weight] : llvm::enumerate(weights)) {
      int64_t place = base + first + int64_t(i);
      if (weight == 0 || (op.getExcludeOutside() && (place < 0 || place >= size)))
        continue;
      place = std::clamp<int64_t>(place, 0, size - 1);
      sum += weight;
      if (!rows[at].empty() && rows[at].back().first == place)
        rows[at].back().second += weight;
      else
        rows[at].emplace_back(place, weight);
    }
    if (op.getExcludeOutside())
      for (auto &entry : rows[at])
        entry.second /= sum;
  }
  return rows;
}

/// A matrix along each dimension; what is outside gets `extrapolation` by means of an image of ones.
SmallVector<Value> ResizeOp::decompose(OpBuilder &builder) {
  auto resize = [&](Value value) {
    for (int64_t dim = 0; dim < tensorOf(value).getRank(); ++dim)
      value = buildResample(builder, getLoc(), value, dim, resizeRows(*this, dim));
    return value;
  };
  Value result = resize(getInput());
  double fill = getExtrapolation().convertToDouble();
  if (getCoordinates() != "tf_crop_and_resize" || fill == 0)
    return {result};
  Value inside = resize(buildFilled(builder, getLoc(), tensorOf(getInput()), 1));
  Value outside = create<SubOp>(builder, getLoc(), buildFilled(builder, getLoc(), tensorOf(result), 1), inside);
  return {create<AddOp>(builder, getLoc(), result, buildScale(builder, getLoc(), outside, fill))};
}

void ResizeOp::compute(HostOperands operands, HostResults results) {
  HostTensor value = operands[0];
  std::vector<bool> isOutside(results[0].numElements(), false);
  SmallVector<int64_t> strides = stridesOf(results[0].shape);
  for (size_t dim = 0; dim < value.shape.size(); ++dim) {
    SparseRows rows = resizeRows(*this, int64_t(dim));
    value = multiply(value, int64_t(dim), rows);
    for (size_t i = 0; i < isOutside.size(); ++i)
      if (rows[i / strides[dim] % rows.size()].empty())
        isOutside[i] = true;
  }
  for (size_t i = 0; i < isOutside.size(); ++i)
    results[0].data[i] = isOutside[i] ? getExtrapolation().convertToDouble() : value.data[i];
}

//===- Col2ImOp --------------------------------------------------------------------------------------------------===//

namespace {
/// One dimension of the patches.
struct PatchDim {
  int64_t image, kernel, stride, dilation, low, high;
  int64_t positions() const { return (image + low + high - dilation * (kernel - 1) - 1) / stride + 1; }
};
} // namespace

template <typename Op> static SmallVector<PatchDim> patchDims(Op op) {
  SmallVector<PatchDim> dims;
  auto at = [](std::optional<ArrayRef<int64_t>> numbers, size_t dim, int64_t other) {
    return numbers && dim < numbers->size() ? (*numbers)[dim] : other;
  };
  for (size_t dim = 0; dim < op.getImage().size(); ++dim)
    dims.push_back({op.getImage()[dim], at(op.getKernel(), dim, 1), at(op.getStrides(), dim, 1),
                    at(op.getDilations(), dim, 1), at(op.getLow(), dim, 0), at(op.getHigh(), dim, 0)});
  return dims;
}

FailureOr<Type> Col2ImOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  if (!isa<FloatType>(input.getElementType()))
    return reject("has input ", input, ", expected floats (dg.cast makes them)");
  size_t numDims = op.getImage().size();
  constexpr int64_t most = 1 << 30; // two of them can be multiplied
  auto isWrong = [&](std::optional<ArrayRef<int64_t>> numbers, int64_t least) {
    return numbers &&
           (numbers->size() != numDims || llvm::any_of(*numbers, [&](int64_t n) { return n < least || n > most; }));
  };
  if (isWrong(op.getImage(), 1) || isWrong(op.getKernel(), 1) || isWrong(op.getStrides(), 1) ||
      isWrong(op.getDilations(), 1) || isWrong(op.getLow(), 0) || isWrong(op.getHigh(), 0))
    return reject("has an image of ", numDims,
                  " dimensions, expected as many numbers, none too small or above 2^30, in kernel, strides, "
                  "dilations, low and high");
  int64_t positions = 1, taps = 1;
  bool isCounted = true;
  for (const PatchDim &dim : patchDims(op)) {
    int64_t own = dim.image + dim.low + dim.high > dim.dilation * (dim.kernel - 1) ? dim.positions() : 0;
    isCounted =
        isCounted && !llvm::MulOverflow(positions, own, positions) && !llvm::MulOverflow(taps, dim.kernel, taps);
  }
  bool fits = isCounted && input.getRank() == 3 && !input.isDynamicDim(1) && input.getDimSize(1) % taps == 0 &&
              mayBeEqual(input.getDimSize(2), positions);
  if (!fits)
    return reject("has patches ", input, ", expected [n, c · ", taps, ", ", positions, "]");
  SmallVector<int64_t> shape{input.getDimSize(0), input.getDimSize(1) / taps};
  llvm::append_range(shape, op.getImage());
  return RankedTensorType::get(shape, input.getElementType());
}

/// (tap, position) side by side in each dimension, then the sum of what falls on the same pixel.
SmallVector<Value> Col2ImOp::decompose(OpBuilder &builder) {
  SmallVector<PatchDim> dims = patchDims(*this);
  int64_t rank = int64_t(dims.size());
  ArrayRef<int64_t> target = tensorOf(getResult()).getShape();
  SmallVector<int64_t> split(target.take_front(2)), joined = split, permutation{0, 1};
  for (const PatchDim &dim : dims)
    split.push_back(dim.kernel);
  for (auto [i, dim] : llvm::enumerate(dims)) {
    split.push_back(dim.positions());
    joined.push_back(dim.kernel * dim.positions());
    permutation.append({2 + int64_t(i), 2 + rank + int64_t(i)});
  }
  Value value = buildReshape(builder, getLoc(), getInput(), split);
  value = create<TransposeOp>(builder, getLoc(), value, permutation);
  value = buildReshape(builder, getLoc(), value, joined);
  for (auto [i, dim] : llvm::enumerate(dims)) {
    SparseRows rows(dim.image);
    for (int64_t tap = 0; tap < dim.kernel; ++tap)
      for (int64_t position = 0; position < dim.positions(); ++position) {
        int64_t pixel = position * dim.stride + tap * dim.dilation - dim.low;
        if (pixel >= 0 && pixel < dim.image)
          rows[pixel].emplace_back(tap * dim.positions() + position, 1);
      }
    value = buildResample(builder, getLoc(), value, 2 + int64_t(i), rows);
  }
  return {value};
}

void Col2ImOp::compute(HostOperands operands, HostResults results) {
  SmallVector<PatchDim> dims = patchDims(*this);
  SmallVector<int64_t> taps, positions, strides = stridesOf(results[0].shape);
  int64_t numPositions = operands[0].shape[2], numTaps = 1;
  for (const PatchDim &dim : dims) {
    taps.push_back(dim.kernel);
    positions.push_back(dim.positions());
    numTaps *= dim.kernel;
  }
  SmallVector<int64_t> tapStrides = stridesOf(taps), positionStrides = stridesOf(positions);
  for (int64_t i = 0; i < operands[0].numElements(); ++i) {
    int64_t position = i % numPositions, tap = i / numPositions % numTaps;
    int64_t pixel = i / (numPositions * numTaps) * strides[1];
    bool isInside = true;
    for (auto [d, dim] : llvm::enumerate(dims)) {
      int64_t at = position / positionStrides[d] % positions[d] * dim.stride +
                   tap / tapStrides[d] % taps[d] * dim.dilation - dim.low;
      isInside &= at >= 0 && at < dim.image;
      pixel += at * strides[2 + d];
    }
    if (isInside)
      results[0].data[pixel] += operands[0].data[i];
  }
}

} // namespace dg::ir

#define DG_OPS "ir/ops/arrangement/ResampleOps.cpp.inc"
#define DG_ADD_OPS addResampleOps
#include "ir/ops/Family.inc"
