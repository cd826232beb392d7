// SPDX-License-Identifier: Apache-2.0
// Arrangements that are made of slices, borders, joins, reshapes and broadcasts. Most of them read each dimension by
// itself, in an order that a table gives: the table is evaluated as it stands, and decomposed into its runs.
#include "ir/ops/arrangement/ArrangementOps.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/ReductionSupport.h"
#include "ir/rules/TypeInference.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::ir {

//===- Tables of places ------------------------------------------------------------------------------------------===//

namespace {
/// For each dimension, for each index of the result, the index of the input; -1 where there is none.
using PlaceTables = SmallVector<SmallVector<int64_t>>;
} // namespace

static SmallVector<int64_t> identityTable(int64_t size) { return llvm::to_vector(llvm::seq<int64_t>(0, size)); }

static void evaluateTables(const HostTensor &input, HostTensor &result, const PlaceTables &tables, double fill) {
  SmallVector<int64_t> strides = stridesOf(input.shape), own = stridesOf(result.shape);
  for (int64_t i = 0; i < result.numElements(); ++i) {
    int64_t place = 0;
    for (size_t dim = 0; dim < tables.size() && place >= 0; ++dim) {
      int64_t at = tables[dim][i / own[dim] % result.shape[dim]];
      place = at < 0 ? -1 : place + at * strides[dim];
    }
    result.data[i] = place < 0 ? fill : input.data[place];
  }
}

/// Each dimension is cut into runs that go forwards, backwards, or stay, and the runs are joined. No entry is -1.
static Value buildTables(OpBuilder &builder, Location loc, Value value, const PlaceTables &tables) {
  for (auto [dim, table] : llvm::enumerate(tables)) {
    auto type = tensorOf(value);
    if (table == identityTable(type.getDimSize(dim)))
      continue;
    SmallVector<Value> pieces;
    for (size_t first = 0; first < table.size();) {
      size_t last = first;
      int64_t step = first + 1 < table.size() ? table[first + 1] - table[first] : 1;
      if (std::abs(step) > 1)
        step = 1;
      while (last + 1 < table.size() && table[last + 1] - table[last] == step)
        ++last;
      int64_t size = int64_t(last - first) + 1;
      SmallVector<int64_t> starts(type.getRank(), 0), sizes(type.getShape()), steps(type.getRank(), 1);
      starts[dim] = table[first];
      sizes[dim] = step == 0 ? 1 : size;
      steps[dim] = step == 0 ? 1 : step;
      Value piece = create<SliceOp>(builder, loc, value, starts, sizes, builder.getDenseI64ArrayAttr(steps));
      if (step == 0) {
        sizes[dim] = size;
        piece = create<ExpandOp>(builder, loc, piece, sizes);
      }
      pieces.push_back(piece);
      first = last + 1;
    }
    value = pieces.size() == 1 ? pieces[0] : Value(create<ConcatOp>(builder, loc, pieces, dim));
  }
  return value;
}

/// Each of `dims` is another dimension of the input, or of what it becomes.
static LogicalResult checkDims(const Rejection &reject, RankedTensorType input, DenseI64ArrayAttr dims, int64_t rank) {
  return areDimsOf(dims, rank)
             ? success()
             : reject("has dimensions ", dims, " for ", input, ", expected different numbers from 0 to ", rank - 1);
}

/// Only dimensions of known size can be rearranged.
static LogicalResult checkKnown(const Rejection &reject, RankedTensorType input, ArrayRef<int64_t> dims) {
  for (int64_t dim : dims)
    if (input.isDynamicDim(dim))
      return reject("rearranges dimension ", dim, " of ", input, ", expected one whose size is known");
  return success();
}

//===- PadOp -----------------------------------------------------------------------------------------------------===//

FailureOr<Type> PadOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  StringRef mode = op.getMode();
  if (!llvm::is_contained({"constant", "reflect", "edge", "wrap"}, mode))
    return reject("has mode \"", mode, "\", expected constant, reflect, edge or wrap");
  auto isCountable = [](int64_t size) { return size >= -(int64_t(1) << 48) && size <= int64_t(1) << 48; };
  if (int64_t(op.getLow().size()) != input.getRank() || int64_t(op.getHigh().size()) != input.getRank() ||
      !llvm::all_of(op.getLow(), isCountable) || !llvm::all_of(op.getHigh(), isCountable))
    return reject("pads ", input, " with low ", op.getLowAttr(), " and high ", op.getHighAttr(), ", expected ",
                  input.getRank(), " numbers of each, up to 2^48");
  if (op.getFill() && (mode != "constant" || tensorOf(op.getFill()).getNumElements() != 1 ||
                       tensorOf(op.getFill()).getElementType() != input.getElementType()))
    return reject("fills ", input, " with ", op.getFill().getType(), " in mode \"", mode,
                  "\", expected one element of the same type in mode \"constant\"");
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < input.getRank(); ++dim) {
    int64_t low = op.getLow()[dim], high = op.getHigh()[dim], size = input.getDimSize(dim);
    if (low == 0 && high == 0) {
      shape.push_back(size);
      continue;
    }
    if (failed(checkKnown(reject, input, dim)))
      return failure();
    // What is left after the cuts is what borders are made of.
    int64_t left = size + std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0);
    bool needsMore = (mode == "reflect" && left < 2) || (mode != "constant" && left < 1);
    if (left < 0 || (needsMore && (low > 0 || high > 0)))
      return reject("pads dimension ", dim, " of ", input, " by ", low, " and ", high, " in mode \"", mode,
                    "\", expected enough elements to cut and to repeat");
    shape.push_back(size + low + high);
  }
  return RankedTensorType::get(shape, input.getElementType());
}

/// Where the border of one dimension comes from; -1 in mode "constant".
static SmallVector<int64_t> padTable(int64_t size, int64_t low, int64_t high, StringRef mode) {
  int64_t first = std::max<int64_t>(-low, 0), left = size - first - std::max<int64_t>(-high, 0);
  SmallVector<int64_t> table;
  for (int64_t i = 0; i < size + low + high; ++i) {
    int64_t at = i - std::max<int64_t>(low, 0);
    if (at < 0 || at >= left) {
      if (mode == "constant") {
        table.push_back(-1);
        continue;
      }
      if (mode == "edge") {
        at = at < 0 ? 0 : left - 1;
      } else if (mode == "wrap") {
        at = (at % left + left) % left;
      } else {
        int64_t period = 2 * (left - 1);
        at = (at % period + period) % period;
        at = std::min(at, period - at);
      }
    }
    table.push_back(first + at);
  }
  return table;
}

static PlaceTables padTables(ArrayRef<int64_t> shape, ArrayRef<int64_t> low, ArrayRef<int64_t> high, StringRef mode) {
  PlaceTables tables;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    tables.push_back(padTable(shape[dim], low[dim], high[dim], mode));
  return tables;
}

/// Cuts, then zeros or `fill` around what is left.
static Value buildCutAndFill(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> low,
                             ArrayRef<int64_t> high, Value fill) {
  SmallVector<int64_t> starts, sizes, before, after;
  for (auto [size, lowest, highest] : llvm::zip_equal(tensorOf(value).getShape(), low, high)) {
    starts.push_back(std::max<int64_t>(-lowest, 0));
    sizes.push_back(size + std::min<int64_t>(lowest, 0) + std::min<int64_t>(highest, 0));
    before.push_back(std::max<int64_t>(lowest, 0));
    after.push_back(std::max<int64_t>(highest, 0));
  }
  if (ArrayRef<int64_t>(sizes) != tensorOf(value).getShape())
    value = create<SliceOp>(builder, loc, value, starts, sizes, DenseI64ArrayAttr());
  auto isZero = [](int64_t number) { return number == 0; };
  if (llvm::all_of(before, isZero) && llvm::all_of(after, isZero))
    return value;
  return create<PadConstantOp>(builder, loc, value, fill, before, after, DenseI64ArrayAttr());
}

SmallVector<Value> PadOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  if (getMode() != "constant")
    return {buildTables(builder, getLoc(), getInput(), padTables(input.getShape(), getLow(), getHigh(), getMode()))};
  Value fill = getFill();
  if (!fill && !getValue().isZero())
    fill =
        buildFilled(builder, getLoc(), RankedTensorType::get({}, input.getElementType()), getValue().convertToDouble());
  return {buildCutAndFill(builder, getLoc(), getInput(), getLow(), getHigh(), fill)};
}

void PadOp::compute(HostOperands operands, HostResults results) {
  double fill = operands.size() > 1 ? operands[1].data[0] : getValue().convertToDouble();
  evaluateTables(operands[0], results[0], padTables(operands[0].shape, getLow(), getHigh(), getMode()), fill);
}

//===- TileOp ----------------------------------------------------------------------------------------------------===//

FailureOr<Type> TileOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  if (int64_t(op.getRepeats().size()) != input.getRank() ||
      llvm::any_of(op.getRepeats(), [](int64_t count) { return count < 0; }))
    return reject("repeats ", input, " by ", op.getRepeatsAttr(), ", expected ", input.getRank(),
                  " numbers, none below 0");
  SmallVector<int64_t> shape(input.getShape());
  for (auto [size, count] : llvm::zip_equal(shape, op.getRepeats()))
    if (!ShapedType::isDynamic(size) && llvm::MulOverflow(size, count, size))
      return reject("repeats ", input, " by ", op.getRepeatsAttr(), ", expected sizes that can be counted");
  for (int64_t dim = 0; dim < input.getRank(); ++dim)
    if (op.getRepeats()[dim] != 1 && failed(checkKnown(reject, input, dim)))
      return failure();
  return RankedTensorType::get(shape, input.getElementType());
}

SmallVector<Value> TileOp::decompose(OpBuilder &builder) {
  SmallVector<int64_t> split, repeated;
  for (auto [size, count] : llvm::zip_equal(tensorOf(getInput()).getShape(), getRepeats())) {
    if (count != 1) {
      split.push_back(1);
      repeated.push_back(count);
    }
    split.push_back(size);
    repeated.push_back(size);
  }
  Value value = buildReshape(builder, getLoc(), getInput(), split);
  if (split != repeated)
    value = create<ExpandOp>(builder, getLoc(), value, repeated);
  return {buildReshape(builder, getLoc(), value, tensorOf(getResult()).getShape())};
}

void TileOp::compute(HostOperands operands, HostResults results) {
  PlaceTables tables;
  for (auto [size, total] : llvm::zip_equal(operands[0].shape, results[0].shape)) {
    tables.push_back(identityTable(total));
    for (int64_t &at : tables.back())
      at %= size;
  }
  evaluateTables(operands[0], results[0], tables, 0);
}

//===- FlipOp ----------------------------------------------------------------------------------------------------===//

FailureOr<Type> FlipOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  if (failed(checkDims(reject, input, op.getDimsAttr(), input.getRank())) ||
      failed(checkKnown(reject, input, op.getDims())))
    return failure();
  return input;
}

static PlaceTables flipTables(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  PlaceTables tables;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    tables.push_back(identityTable(size));
    if (llvm::is_contained(dims, int64_t(dim)))
      std::reverse(tables.back().begin(), tables.back().end());
  }
  return tables;
}

SmallVector<Value> FlipOp::decompose(OpBuilder &builder) {
  return {buildTables(builder, getLoc(), getInput(), flipTables(tensorOf(getInput()).getShape(), getDims()))};
}

void FlipOp::compute(HostOperands operands, HostResults results) {
  evaluateTables(operands[0], results[0], flipTables(operands[0].shape, getDims()), 0);
}

//===- RollOp ----------------------------------------------------------------------------------------------------===//

FailureOr<Type> RollOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  if (failed(checkDims(reject, input, op.getDimsAttr(), input.getRank())))
    return failure();
  if (op.getShifts().size() != op.getDims().size())
    return reject("has shifts ", op.getShiftsAttr(), " for dimensions ", op.getDimsAttr(),
                  ", expected one shift for each dimension");
  if (failed(checkKnown(reject, input, op.getDims())))
    return failure();
  return input;
}

static PlaceTables rollTables(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, ArrayRef<int64_t> shifts) {
  PlaceTables tables;
  for (int64_t size : shape)
    tables.push_back(identityTable(size));
  for (auto [dim, shift] : llvm::zip_equal(dims, shifts))
    if (int64_t size = shape[dim]; size > 0)
      for (int64_t i = 0; i < size; ++i)
        tables[dim][i] = ((i - shift) % size + size) % size;
  return tables;
}

SmallVector<Value> RollOp::decompose(OpBuilder &builder) {
  return {
      buildTables(builder, getLoc(), getInput(), rollTables(tensorOf(getInput()).getShape(), getDims(), getShifts()))};
}

void RollOp::compute(HostOperands operands, HostResults results) {
  evaluateTables(operands[0], results[0], rollTables(operands[0].shape, getDims(), getShifts()), 0);
}

//===- CenterCropPadOp -------------------------------------------------------------------------------------------===//

FailureOr<Type> CenterCropPadOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  if (failed(checkDims(reject, input, op.getDimsAttr(), input.getRank())))
    return failure();
  if (op.getSizes().size() != op.getDims().size() || llvm::any_of(op.getSizes(), [](int64_t size) { return size < 0; }))
    return reject("has sizes ", op.getSizesAttr(), " for dimensions ", op.getDimsAttr(),
                  ", expected one size, not below 0, for each dimension");
  SmallVector<int64_t> shape(input.getShape());
  if (failed(checkKnown(reject, input, op.getDims())))
    return failure();
  for (auto [dim, size] : llvm::zip_equal(op.getDims(), op.getSizes()))
    shape[dim] = size;
  return RankedTensorType::get(shape, input.getElementType());
}

/// What is added (or, negative, cut) at both ends; the odd element goes to the end.
static std::pair<SmallVector<int64_t>, SmallVector<int64_t>> centered(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  SmallVector<int64_t> low, high;
  for (auto [size, target] : llvm::zip_equal(from, to)) {
    low.push_back((target - size) / 2);
    high.push_back(target - size - low.back());
  }
  return {low, high};
}

SmallVector<Value> CenterCropPadOp::decompose(OpBuilder &builder) {
  auto [low, high] = centered(tensorOf(getInput()).getShape(), tensorOf(getResult()).getShape());
  return {buildCutAndFill(builder, getLoc(), getInput(), low, high, Value())};
}

void CenterCropPadOp::compute(HostOperands operands, HostResults results) {
  auto [low, high] = centered(operands[0].shape, results[0].shape);
  evaluateTables(operands[0], results[0], padTables(operands[0].shape, low, high, "constant"), 0);
}

//===- Reshapes --------------------------------------------------------------------------------------------------===//

FailureOr<Type> SqueezeOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  if (failed(checkDims(reject, input, op.getDimsAttr(), input.getRank())))
    return failure();
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < input.getRank(); ++dim) {
    if (!llvm::is_contained(op.getDims(), dim))
      shape.push_back(input.getDimSize(dim));
    else if (input.getDimSize(dim) != 1)
      return reject("drops dimension ", dim, " of ", input, ", expected one of size 1");
  }
  return RankedTensorType::get(shape, input.getElementType());
}

FailureOr<Type> UnsqueezeOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  int64_t rank = input.getRank() + int64_t(op.getDims().size());
  if (failed(checkDims(reject, input, op.getDimsAttr(), rank)))
    return failure();
  SmallVector<int64_t> shape;
  for (int64_t dim = 0, from = 0; dim < rank; ++dim)
    shape.push_back(llvm::is_contained(op.getDims(), dim) ? 1 : input.getDimSize(from++));
  return RankedTensorType::get(shape, input.getElementType());
}

FailureOr<Type> FlattenOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  int64_t dim = op.getDim();
  if (dim < 0 || dim > input.getRank())
    return reject("flattens ", input, " from dimension ", dim, ", expected 0 to ", input.getRank());
  auto product = [](ArrayRef<int64_t> sizes) {
    int64_t count = 1;
    for (int64_t size : sizes)
      count = ShapedType::isDynamic(size) || ShapedType::isDynamic(count) ? ShapedType::kDynamic : count * size;
    return count;
  };
  return RankedTensorType::get({product(input.getShape().take_front(dim)), product(input.getShape().drop_front(dim))},
                               input.getElementType());
}

/// The same elements in the same order.
#define DG_RESHAPE(Op)                                                                                                 \
  SmallVector<Value> Op::decompose(OpBuilder &builder) {                                                               \
    return {buildReshape(builder, getLoc(), getInput(), tensorOf(getResult()).getShape())};                            \
  }                                                                                                                    \
  void Op::compute(HostOperands operands, HostResults results) { results[0].data = operands[0].data; }
DG_RESHAPE(SqueezeOp)
DG_RESHAPE(UnsqueezeOp)
DG_RESHAPE(FlattenOp)
#undef DG_RESHAPE

//===- DepthToSpaceOp and SpaceToDepthOp -------------------------------------------------------------------------===//

FailureOr<Type> DepthToSpaceOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  int64_t block = op.getBlock();
  constexpr int64_t mostBlock = 1 << 14; // its square, and a size times it, can be counted
  if (input.getRank() != 4 || block < 1 || block > mostBlock ||
      ShapedType::isDynamicShape(input.getShape().drop_front()) || input.getDimSize(1) % (block * block) != 0)
    return reject("takes blocks of ", block, " from ", input,
                  ", expected an image [n, c, h, w] whose channels the square of the block divides");
  return RankedTensorType::get({input.getDimSize(0), input.getDimSize(1) / (block * block), input.getDimSize(2) * block,
                                input.getDimSize(3) * block},
                               input.getElementType());
}

SmallVector<Value> DepthToSpaceOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  int64_t n = input.getDimSize(0), h = input.getDimSize(2), w = input.getDimSize(3), block = getBlock(),
          c = tensorOf(getResult()).getDimSize(1);
  const int64_t blocksFirst[] = {0, 3, 4, 1, 5, 2}, channelsFirst[] = {0, 1, 4, 2, 5, 3};
  Value split = getChannelsMajor() ? buildReshape(builder, getLoc(), getInput(), {n, c, block, block, h, w})
                                   : buildReshape(builder, getLoc(), getInput(), {n, block, block, c, h, w});
  Value turned = create<TransposeOp>(builder, getLoc(), split, getChannelsMajor() ? channelsFirst : blocksFirst);
  return {buildReshape(builder, getLoc(), turned, tensorOf(getResult()).getShape())};
}

/// The channel in which pixel (row, column) of a block lies.
static int64_t blockChannel(int64_t row, int64_t column, int64_t c, int64_t numChannels, int64_t block, bool isMajor) {
  return isMajor ? (c * block + row) * block + column : (row * block + column) * numChannels + c;
}

void DepthToSpaceOp::compute(HostOperands operands, HostResults results) {
  SmallVector<int64_t> from = stridesOf(operands[0].shape), to = stridesOf(results[0].shape);
  int64_t block = getBlock(), numChannels = results[0].shape[1];
  for (int64_t i = 0; i < results[0].numElements(); ++i) {
    int64_t n = i / to[0], c = i / to[1] % numChannels, y = i / to[2] % results[0].shape[2],
            x = i % results[0].shape[3];
    int64_t channel = blockChannel(y % block, x % block, c, numChannels, block, getChannelsMajor());
    results[0].data[i] = operands[0].data[n * from[0] + channel * from[1] + y / block * from[2] + x / block];
  }
}

FailureOr<Type> SpaceToDepthOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  int64_t block = op.getBlock();
  if (input.getRank() != 4 || block < 1 || ShapedType::isDynamicShape(input.getShape().drop_front()) ||
      llvm::is_contained(input.getShape().drop_front(2), 0) || input.getDimSize(2) % block != 0 ||
      input.getDimSize(3) % block != 0)
    return reject("takes blocks of ", block, " from ", input,
                  ", expected an image [n, c, h, w] with pixels whose height and width the block divides");
  return RankedTensorType::get({input.getDimSize(0), input.getDimSize(1) * block * block, input.getDimSize(2) / block,
                                input.getDimSize(3) / block},
                               input.getElementType());
}

SmallVector<Value> SpaceToDepthOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  int64_t block = getBlock();
  Value split = buildReshape(builder, getLoc(), getInput(),
                             {input.getDimSize(0), input.getDimSize(1), input.getDimSize(2) / block, block,
                              input.getDimSize(3) / block, block});
  const int64_t blocksFirst[] = {0, 3, 5, 1, 2, 4};
  Value turned = create<TransposeOp>(builder, getLoc(), split, blocksFirst);
  return {buildReshape(builder, getLoc(), turned, tensorOf(getResult()).getShape())};
}

void SpaceToDepthOp::compute(HostOperands operands, HostResults results) {
  SmallVector<int64_t> from = stridesOf(operands[0].shape), to = stridesOf(results[0].shape);
  int64_t block = getBlock(), numChannels = operands[0].shape[1];
  for (int64_t i = 0; i < operands[0].numElements(); ++i) {
    int64_t n = i / from[0], c = i / from[1] % numChannels, y = i / from[2] % operands[0].shape[2],
            x = i % operands[0].shape[3];
    int64_t channel = blockChannel(y % block, x % block, c, numChannels, block, /*isMajor=*/false);
    results[0].data[n * to[0] + channel * to[1] + y / block * to[2] + x / block] = operands[0].data[i];
  }
}

//===- EyeOp -----------------------------------------------------------------------------------------------------===//

LogicalResult EyeOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape() || type.getRank() != 2)
    return emitOpError() << "has type " << getType() << ", expected a matrix whose sizes are numbers";
  return success();
}

/// What both triangles of a matrix of ones have.
SmallVector<Value> EyeOp::decompose(OpBuilder &builder) {
  Value ones = buildFilled(builder, getLoc(), tensorOf(getResult()), 1);
  Value upper = create<TriluOp>(builder, getLoc(), ones, /*upper=*/true, getDiagonal());
  return {create<TriluOp>(builder, getLoc(), upper, /*upper=*/false, getDiagonal())};
}

void EyeOp::compute(HostOperands, HostResults results) {
  int64_t columns = results[0].shape[1];
  for (int64_t i = 0; i < results[0].numElements(); ++i)
    results[0].data[i] = i % columns - i / columns == int64_t(getDiagonal());
}

} // namespace dg::ir

#define DG_OPS "ir/ops/arrangement/ArrangementOps.cpp.inc"
#define DG_ADD_OPS addArrangementOps
#include "ir/ops/Family.inc"
