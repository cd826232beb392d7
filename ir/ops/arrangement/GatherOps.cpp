// SPDX-License-Identifier: Apache-2.0
// ONNX's forms of reading and writing at places given by integers. Writes that meet happen in row-major order of the
// updates, so that sums have one bracketing.
#include "ir/ops/arrangement/GatherOps.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/ShardingRules.h"
#include "ir/rules/TypeInference.h"

using namespace mlir;

namespace dg::ir {

using Gradients = FailureOr<SmallVector<Value>>;

//===- What all share --------------------------------------------------------------------------------------------===//

template <typename Op> static LogicalResult checkIndices(std::optional<Location> location, RankedTensorType indices) {
  if (isa<IntegerType>(indices.getElementType()) && !indices.getElementType().isInteger(1))
    return success();
  return reject<Op>(location, "has indices ", indices, ", expected integers");
}

template <typename Op>
static LogicalResult checkDim(std::optional<Location> location, RankedTensorType input, int64_t dim) {
  if (dim >= 0 && dim < input.getRank())
    return success();
  return reject<Op>(location, "has dimension ", dim, " of ", input, ", expected 0 to ", input.getRank() - 1);
}

template <typename Op> static LogicalResult checkReduction(std::optional<Location> location, StringRef reduction) {
  if (llvm::is_contained({"none", "add", "mul", "min", "max"}, reduction))
    return success();
  return reject<Op>(location, "has reduction \"", reduction, "\", expected none, add, mul, min or max");
}

/// The place that an index names, from the end where it is negative; -1 with an error where there is none.
static int64_t placeAt(Operation *op, const HostTensor &indices, int64_t at, int64_t size) {
  int64_t index = int64_t(indices.data[at]), place = index < 0 ? index + size : index;
  if (place >= 0 && place < size)
    return place;
  op->emitOpError() << "found index " << index << " at place " << at << ", expected " << -size << " to " << size - 1;
  return -1;
}

static double combine(StringRef reduction, double present, double update) {
  if (reduction == "add")
    return present + update;
  if (reduction == "mul")
    return present * update;
  if (reduction == "min")
    return update < present ? update : present;
  if (reduction == "max")
    return update > present ? update : present;
  return update;
}

/// The largest of the dimensions that a row of the indices has places in: each column has a bound of its own.
static int64_t mostPlaces(RankedTensorType input, int64_t batchDims, RankedTensorType indices) {
  int64_t most = 0;
  for (int64_t size : input.getShape().slice(batchDims, indices.getShape().back()))
    most = std::max(most, size);
  return most;
}

static int64_t productOf(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

/// What is read and written is what the result and the smaller operand hold.
static OpCost copyCost(Type moved, Type indices, double flopsPerElement) {
  auto type = cast<RankedTensorType>(moved), places = cast<RankedTensorType>(indices);
  double elements = double(type.getNumElements());
  return {flopsPerElement * elements, 2 * elements * type.getElementTypeBitWidth() / 8 +
                                          double(places.getNumElements()) * places.getElementTypeBitWidth() / 8};
}

static void tie(ShardingRule &rule, int64_t size, ArrayRef<std::pair<unsigned, int64_t>> operandDims,
                std::optional<int64_t> resultDim) {
  int32_t factor = rule.addFactor(size);
  for (auto [operand, dim] : operandDims)
    rule.operands[operand][dim].push_back(factor);
  if (resultDim)
    rule.results[0][*resultDim].push_back(factor);
}

//===- GatherOp --------------------------------------------------------------------------------------------------===//

LogicalResult GatherOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                         SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto input = tensorOf(op.getInput()), indices = tensorOf(op.getIndices());
  int64_t dim = op.getDim();
  if (failed(checkIndices<GatherOp>(location, indices)) || failed(checkDim<GatherOp>(location, input, dim)))
    return failure();
  SmallVector<int64_t> shape(input.getShape().take_front(dim));
  llvm::append_range(shape, indices.getShape());
  llvm::append_range(shape, input.getShape().drop_front(dim + 1));
  inferred.push_back(RankedTensorType::get(shape, input.getElementType()));
  return success();
}

Gradients GatherOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{builder.create<GatherGradOp>(getLoc(), grads[0], getIndices(), getDim(),
                                                         tensorOf(getInput()).getDimSize(getDim()), PlaceAttr()),
                            Value()};
}

ShardingRule GatherOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices());
  int64_t dim = getDim();
  for (int64_t i = 0; i < dim; ++i)
    tie(rule, input.getDimSize(i), {{0, i}}, i);
  for (int64_t i = 0; i < indices.getRank(); ++i)
    tie(rule, indices.getDimSize(i), {{1, i}}, dim + i);
  for (int64_t i = dim + 1; i < input.getRank(); ++i)
    tie(rule, input.getDimSize(i), {{0, i}}, i + indices.getRank() - 1);
  return rule;
}

OpCost GatherOp::getCost() { return copyCost(getResult().getType(), getIndices().getType(), 0); }

IndexBound GatherOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getInput()).getDimSize(getDim()) : 0, /*countsFromEnd=*/true};
}

LogicalResult GatherOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                 const RunScalars &) {
  int64_t size = operands[0].shape[getDim()], inner = productOf(ArrayRef(operands[0].shape).drop_front(getDim() + 1)),
          outer = productOf(ArrayRef(operands[0].shape).take_front(getDim())), count = operands[1].numElements();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count; ++i) {
      int64_t place = placeAt(*this, operands[1], i, size);
      if (place < 0)
        return failure();
      std::copy_n(operands[0].data.begin() + (o * size + place) * inner, inner,
                  results[0].data.begin() + (o * count + i) * inner);
    }
  return success();
}

//===- GatherGradOp ----------------------------------------------------------------------------------------------===//

LogicalResult GatherGradOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                             SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto grad = tensorOf(op.getGrad()), indices = tensorOf(op.getIndices());
  int64_t dim = op.getDim();
  if (failed(checkIndices<GatherGradOp>(location, indices)))
    return failure();
  if (dim < 0 || dim + indices.getRank() > grad.getRank() ||
      !mayBeEqual(grad.getShape().slice(dim, indices.getRank()), indices.getShape()))
    return reject<GatherGradOp>(location, "has gradient ", grad, " for indices ", indices, " along dimension ", dim,
                                ", expected the shape of the indices there");
  SmallVector<int64_t> shape(grad.getShape().take_front(dim));
  shape.push_back(op.getSize());
  llvm::append_range(shape, grad.getShape().drop_front(dim + indices.getRank()));
  inferred.push_back(RankedTensorType::get(shape, grad.getElementType()));
  return success();
}

Gradients GatherGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{builder.create<GatherOp>(getLoc(), grads[0], getIndices(), getDim(), PlaceAttr()), Value()};
}

/// Cut along the indices, each shard sums its own slices.
ShardingRule GatherGradOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto grad = tensorOf(getGrad()), indices = tensorOf(getIndices());
  int64_t dim = getDim();
  for (int64_t i = 0; i < dim; ++i)
    tie(rule, grad.getDimSize(i), {{0, i}}, i);
  for (int64_t i = 0; i < indices.getRank(); ++i)
    tie(rule, indices.getDimSize(i), {{0, dim + i}, {1, i}}, std::nullopt);
  for (int64_t i = dim + indices.getRank(); i < grad.getRank(); ++i)
    tie(rule, grad.getDimSize(i), {{0, i}}, i - indices.getRank() + 1);
  return rule;
}

OpCost GatherGradOp::getCost() { return {double(tensorOf(getGrad()).getNumElements()), operandAndResultBytes(*this)}; }

IndexBound GatherGradOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? int64_t(getSize()) : 0, /*countsFromEnd=*/true};
}

LogicalResult GatherGradOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                     const RunScalars &) {
  int64_t size = getSize(), inner = productOf(ArrayRef(results[0].shape).drop_front(getDim() + 1)),
          outer = productOf(ArrayRef(results[0].shape).take_front(getDim())), count = operands[1].numElements();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count; ++i) {
      int64_t place = placeAt(*this, operands[1], i, size);
      if (place < 0)
        return failure();
      for (int64_t j = 0; j < inner; ++j)
        results[0].data[(o * size + place) * inner + j] += operands[0].data[(o * count + i) * inner + j];
    }
  return success();
}

//===- GatherElementsOp and ScatterElementsOp --------------------------------------------------------------------===//

/// The indices have the rank of the input, and are not larger but along `dim`.
template <typename Op>
static LogicalResult checkElementIndices(std::optional<Location> location, RankedTensorType input,
                                         RankedTensorType indices, int64_t dim) {
  if (failed(checkIndices<Op>(location, indices)) || failed(checkDim<Op>(location, input, dim)))
    return failure();
  bool fits = input.getRank() == indices.getRank();
  for (int64_t i = 0; fits && i < input.getRank(); ++i)
    fits = i == dim || input.isDynamicDim(i) || indices.isDynamicDim(i) || indices.getDimSize(i) <= input.getDimSize(i);
  return fits ? success()
              : reject<Op>(location, "has indices ", indices, " for ", input,
                           ", expected as many dimensions, none larger but dimension ", dim);
}

LogicalResult GatherElementsOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                                 SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto input = tensorOf(op.getInput()), indices = tensorOf(op.getIndices());
  if (failed(checkElementIndices<GatherElementsOp>(location, input, indices, op.getDim())))
    return failure();
  inferred.push_back(RankedTensorType::get(indices.getShape(), input.getElementType()));
  return success();
}

Gradients GatherElementsOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value zeros = buildFilled(builder, getLoc(), tensorOf(getInput()), 0);
  return SmallVector<Value>{
      builder.create<ScatterElementsOp>(getLoc(), zeros, getIndices(), grads[0], getDim(), "add", PlaceAttr()),
      Value()};
}

ShardingRule GatherElementsOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices());
  for (int64_t i = 0; i < input.getRank(); ++i) {
    if (i == int64_t(getDim()))
      tie(rule, indices.getDimSize(i), {{1, i}}, i);
    else if (input.getDimSize(i) == indices.getDimSize(i))
      tie(rule, indices.getDimSize(i), {{0, i}, {1, i}}, i);
  }
  return rule;
}

OpCost GatherElementsOp::getCost() { return copyCost(getResult().getType(), getIndices().getType(), 0); }

IndexBound GatherElementsOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getInput()).getDimSize(getDim()) : 0, /*countsFromEnd=*/true};
}

LogicalResult GatherElementsOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                         const RunScalars &) {
  SmallVector<int64_t> strides = stridesOf(operands[0].shape), others = strides;
  others[getDim()] = 0;
  int64_t i = 0;
  LogicalResult outcome = success();
  forEachIndex(operands[1].shape, {others}, [&](ArrayRef<int64_t> at) {
    int64_t place = failed(outcome) ? -1 : placeAt(*this, operands[1], i, operands[0].shape[getDim()]);
    if (place < 0)
      outcome = failure();
    else
      results[0].data[i] = operands[0].data[at[0] + place * strides[getDim()]];
    ++i;
  });
  return outcome;
}

LogicalResult ScatterElementsOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                                  SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto input = tensorOf(op.getInput()), indices = tensorOf(op.getIndices()), updates = tensorOf(op.getUpdates());
  if (failed(checkElementIndices<ScatterElementsOp>(location, input, indices, op.getDim())) ||
      failed(checkReduction<ScatterElementsOp>(location, op.getReduction())))
    return failure();
  if (!mayBeEqual(updates.getShape(), indices.getShape()) || updates.getElementType() != input.getElementType())
    return reject<ScatterElementsOp>(location, "has updates ", updates, " for input ", input, " and indices ", indices,
                                     ", expected the input's element type and the shape of the indices");
  inferred.push_back(input);
  return success();
}

/// What the update op adds to, multiplies or replaces gets the gradient where it is still there; updates read theirs
/// from where they went. (Where several updates replace the same element the result depends on the last alone; ONNX
/// leaves that undefined, and so does the gradient.)
template <typename Op, typename Read, typename Write>
static Gradients scatterGradients(Op op, OpBuilder &builder, Value grad, Read read, Write write) {
  StringRef reduction = op.getReduction();
  Location loc = op.getLoc();
  if (reduction == "none") {
    Value zeros = buildFilled(builder, loc, tensorOf(op.getUpdates()), 0);
    return SmallVector<Value>{write(grad, zeros), Value(), read(grad)};
  }
  if (reduction == "add")
    return SmallVector<Value>{grad, Value(), read(grad)};
  if (reduction == "mul") {
    Value weighed = builder.create<MulOp>(loc, grad, op.getResult(), PlaceAttr());
    return SmallVector<Value>{write(grad, op.getUpdates()), Value(),
                              builder.create<DivOp>(loc, read(weighed), op.getUpdates(), PlaceAttr())};
  }
  return op.emitOpError() << "has no gradient with reduction \"" << reduction << "\", expected none, add or mul";
}

Gradients ScatterElementsOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return scatterGradients(
      *this, builder, grads[0],
      [&](Value from) -> Value {
        return builder.create<GatherElementsOp>(getLoc(), from, getIndices(), getDim(), PlaceAttr());
      },
      [&](Value into, Value updates) -> Value {
        return builder.create<ScatterElementsOp>(getLoc(), into, getIndices(), updates, getDim(), getReduction(),
                                                 PlaceAttr());
      });
}

ShardingRule ScatterElementsOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices());
  for (int64_t i = 0; i < input.getRank(); ++i)
    if (i != int64_t(getDim()) && input.getDimSize(i) == indices.getDimSize(i))
      tie(rule, input.getDimSize(i), {{0, i}, {1, i}, {2, i}}, i);
  return rule;
}

OpCost ScatterElementsOp::getCost() {
  return {double(tensorOf(getUpdates()).getNumElements()), operandAndResultBytes(*this)};
}

IndexBound ScatterElementsOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getInput()).getDimSize(getDim()) : 0, /*countsFromEnd=*/true};
}

LogicalResult ScatterElementsOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                          const RunScalars &) {
  results[0].data = operands[0].data;
  SmallVector<int64_t> strides = stridesOf(operands[0].shape), others = strides;
  others[getDim()] = 0;
  int64_t i = 0;
  LogicalResult outcome = success();
  forEachIndex(operands[1].shape, {others}, [&](ArrayRef<int64_t> at) {
    int64_t place = failed(outcome) ? -1 : placeAt(*this, operands[1], i, operands[0].shape[getDim()]);
    if (place < 0) {
      outcome = failure();
    } else {
      double &element = results[0].data[at[0] + place * strides[getDim()]];
      element = combine(getReduction(), element, operands[2].data[i]);
    }
    ++i;
  });
  return outcome;
}

//===- GatherNdOp and ScatterNdOp --------------------------------------------------------------------------------===//

/// The dimensions of input and indices that an op on rows of indices tells apart.
struct NdShape {
  int64_t batchDims, depth; ///< leading dimensions that both have; dimensions that a row of the indices names
  /// Of the slices: the batch, then the indices without their rows, then the input behind what rows name.
  SmallVector<int64_t> slices;
};

template <typename Op>
static FailureOr<NdShape> ndShape(std::optional<Location> location, RankedTensorType input, RankedTensorType indices,
                                  int64_t batchDims) {
  if (failed(checkIndices<Op>(location, indices)))
    return failure();
  int64_t depth = indices.getRank() > 0 ? indices.getShape().back() : -1;
  bool fits = depth >= 0 && batchDims >= 0 && batchDims < indices.getRank() && batchDims + depth <= input.getRank() &&
              mayBeEqual(input.getShape().take_front(batchDims), indices.getShape().take_front(batchDims));
  if (!fits) {
    (void)reject<Op>(location, "has input ", input, " and indices ", indices, " with ", batchDims,
                     " batch dimensions, expected equal batch dimensions and rows of indices that name no more "
                     "dimensions than the input has behind them");
    return failure();
  }
  NdShape shape{batchDims, depth, SmallVector<int64_t>(indices.getShape().drop_back())};
  llvm::append_range(shape.slices, input.getShape().drop_front(batchDims + depth));
  return shape;
}

/// Calls `visit(place in the input, place among the slices)` with the first element of each slice, in order.
template <typename Visit>
static LogicalResult forEachSlice(Operation *op, const HostTensor &input, const HostTensor &indices, int64_t batchDims,
                                  Visit visit) {
  int64_t depth = indices.shape.back(), rows = productOf(ArrayRef(indices.shape).drop_back());
  int64_t batch = productOf(ArrayRef(indices.shape).take_front(batchDims));
  int64_t inner = productOf(ArrayRef(input.shape).drop_front(batchDims + depth));
  int64_t perBatch = input.numElements() / std::max<int64_t>(batch, 1);
  SmallVector<int64_t> strides = stridesOf(input.shape);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t at = row / (rows / batch) * perBatch;
    for (int64_t i = 0; i < depth; ++i) {
      int64_t place = placeAt(op, indices, row * depth + i, input.shape[batchDims + i]);
      if (place < 0)
        return failure();
      at += place * strides[batchDims + i];
    }
    visit(at, row * inner);
  }
  return success();
}

LogicalResult GatherNdOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                           SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto input = tensorOf(op.getInput());
  auto shape = ndShape<GatherNdOp>(location, input, tensorOf(op.getIndices()), op.getBatchDims());
  if (failed(shape))
    return failure();
  inferred.push_back(RankedTensorType::get(shape->slices, input.getElementType()));
  return success();
}

Gradients GatherNdOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value zeros = buildFilled(builder, getLoc(), tensorOf(getInput()), 0);
  return SmallVector<Value>{
      builder.create<ScatterNdOp>(getLoc(), zeros, getIndices(), grads[0], getBatchDims(), "add", PlaceAttr()),
      Value()};
}

ShardingRule GatherNdOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices()), result = tensorOf(getResult());
  int64_t batchDims = getBatchDims(), numPlaces = indices.getRank() - 1;
  for (int64_t i = 0; i < batchDims; ++i)
    tie(rule, input.getDimSize(i), {{0, i}, {1, i}}, i);
  for (int64_t i = batchDims; i < numPlaces; ++i)
    tie(rule, indices.getDimSize(i), {{1, i}}, i);
  for (int64_t i = numPlaces; i < result.getRank(); ++i)
    tie(rule, result.getDimSize(i), {{0, input.getRank() - (result.getRank() - i)}}, i);
  return rule;
}

OpCost GatherNdOp::getCost() { return copyCost(getResult().getType(), getIndices().getType(), 0); }

IndexBound GatherNdOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? mostPlaces(tensorOf(getInput()), getBatchDims(), tensorOf(getIndices())) : 0,
          /*countsFromEnd=*/true};
}

LogicalResult GatherNdOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                   const RunScalars &) {
  int64_t inner = productOf(ArrayRef(operands[0].shape).drop_front(getBatchDims() + operands[1].shape.back()));
  return forEachSlice(*this, operands[0], operands[1], getBatchDims(), [&](int64_t from, int64_t to) {
    std::copy_n(operands[0].data.begin() + from, inner, results[0].data.begin() + to);
  });
}

LogicalResult ScatterNdOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                            SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto input = tensorOf(op.getInput()), updates = tensorOf(op.getUpdates());
  auto shape = ndShape<ScatterNdOp>(location, input, tensorOf(op.getIndices()), op.getBatchDims());
  if (failed(shape) || failed(checkReduction<ScatterNdOp>(location, op.getReduction())))
    return failure();
  if (!mayBeEqual(updates.getShape(), shape->slices) || updates.getElementType() != input.getElementType())
    return reject<ScatterNdOp>(location, "has updates ", updates, ", expected ",
                               RankedTensorType::get(shape->slices, input.getElementType()));
  inferred.push_back(input);
  return success();
}

Gradients ScatterNdOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return scatterGradients(
      *this, builder, grads[0],
      [&](Value from) -> Value {
        return builder.create<GatherNdOp>(getLoc(), from, getIndices(), getBatchDims(), PlaceAttr());
      },
      [&](Value into, Value updates) -> Value {
        return builder.create<ScatterNdOp>(getLoc(), into, getIndices(), updates, getBatchDims(), getReduction(),
                                           PlaceAttr());
      });
}

ShardingRule ScatterNdOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices()), updates = tensorOf(getUpdates());
  int64_t batchDims = getBatchDims();
  for (int64_t i = 0; i < batchDims; ++i)
    tie(rule, input.getDimSize(i), {{0, i}, {1, i}, {2, i}}, i);
  for (int64_t i = batchDims + indices.getShape().back(); i < input.getRank(); ++i)
    tie(rule, input.getDimSize(i), {{0, i}, {2, updates.getRank() - (input.getRank() - i)}}, i);
  return rule;
}

OpCost ScatterNdOp::getCost() {
  return {double(tensorOf(getUpdates()).getNumElements()), operandAndResultBytes(*this)};
}

IndexBound ScatterNdOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? mostPlaces(tensorOf(getInput()), getBatchDims(), tensorOf(getIndices())) : 0,
          /*countsFromEnd=*/true};
}

LogicalResult ScatterNdOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                    const RunScalars &) {
  results[0].data = operands[0].data;
  int64_t inner = productOf(ArrayRef(operands[0].shape).drop_front(getBatchDims() + operands[1].shape.back()));
  return forEachSlice(*this, operands[0], operands[1], getBatchDims(), [&](int64_t to, int64_t from) {
    for (int64_t i = 0; i < inner; ++i)
      results[0].data[to + i] = combine(getReduction(), results[0].data[to + i], operands[2].data[from + i]);
  });
}

//===- OneHotOp --------------------------------------------------------------------------------------------------===//

LogicalResult OneHotOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                         SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto indices = tensorOf(op.getIndices());
  int64_t depth = op.getDepth(), dim = op.getDim();
  if (failed(checkIndices<OneHotOp>(location, indices)))
    return failure();
  if (depth < 0 || dim < 0 || dim > indices.getRank() || !op.getType().isIntOrFloat())
    return reject<OneHotOp>(location, "puts ", indices, " into a dimension ", dim, " of size ", depth, " of ",
                            op.getType(), ", expected dimension 0 to ", indices.getRank(),
                            ", a size not below 0 and an element type");
  SmallVector<int64_t> shape(indices.getShape());
  shape.insert(shape.begin() + dim, depth);
  inferred.push_back(RankedTensorType::get(shape, op.getType()));
  return success();
}

ShardingRule OneHotOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto indices = tensorOf(getIndices());
  for (int64_t i = 0; i < indices.getRank(); ++i)
    tie(rule, indices.getDimSize(i), {{0, i}}, i < int64_t(getDim()) ? i : i + 1);
  return rule;
}

LogicalResult OneHotOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                 const RunScalars &) {
  int64_t depth = getDepth(), inner = productOf(ArrayRef(results[0].shape).drop_front(getDim() + 1));
  for (int64_t i = 0; i < results[0].numElements(); ++i) {
    int64_t index = int64_t(operands[0].data[i / (inner * depth) * inner + i % inner]);
    results[0].data[i] = (index < 0 ? index + depth : index) == i / inner % depth;
  }
  return success();
}

//===- ReverseSequenceOp -----------------------------------------------------------------------------------------===//

LogicalResult ReverseSequenceOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                                  SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto input = tensorOf(op.getInput()), lengths = tensorOf(op.getLengths());
  int64_t batchDim = op.getBatchDim();
  if (failed(checkIndices<ReverseSequenceOp>(location, lengths)))
    return failure();
  if (batchDim < 0 || batchDim > 1 || input.getRank() < 2 || lengths.getRank() != 1 ||
      !mayBeEqual(lengths.getDimSize(0), input.getDimSize(batchDim)))
    return reject<ReverseSequenceOp>(location, "reverses ", input, " by lengths ", lengths, " with batch dimension ",
                                     batchDim, ", expected one length for each of dimension 0 or 1");
  inferred.push_back(input);
  return success();
}

Gradients ReverseSequenceOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{
      builder.create<ReverseSequenceOp>(getLoc(), grads[0], getLengths(), getBatchDim(), PlaceAttr()), Value()};
}

ShardingRule ReverseSequenceOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput());
  int64_t batchDim = getBatchDim();
  tie(rule, input.getDimSize(batchDim), {{0, batchDim}, {1, 0}}, batchDim);
  for (int64_t i = 2; i < input.getRank(); ++i)
    tie(rule, input.getDimSize(i), {{0, i}}, i);
  return rule;
}

/// A sequence may be as long as there are steps.
IndexBound ReverseSequenceOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getInput()).getDimSize(1 - getBatchDim()) + 1 : 0};
}

LogicalResult ReverseSequenceOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                          const RunScalars &) {
  const HostTensor &input = operands[0];
  int64_t inner = productOf(ArrayRef(input.shape).drop_front(2)), batchDim = getBatchDim(),
          steps = input.shape[1 - batchDim];
  for (int64_t i = 0; i < input.shape[0]; ++i)
    for (int64_t j = 0; j < input.shape[1]; ++j) {
      int64_t batch = batchDim == 0 ? i : j, time = batchDim == 0 ? j : i;
      auto length = int64_t(operands[1].data[batch]);
      if (length < 0 || length > steps)
        return emitOpError() << "found length " << length << " of sequence " << batch << ", expected 0 to " << steps;
      int64_t from = time < length ? length - 1 - time : time;
      int64_t source = batchDim == 0 ? i * steps + from : from * input.shape[1] + j;
      std::copy_n(input.data.begin() + source * inner, inner,
                  results[0].data.begin() + (i * input.shape[1] + j) * inner);
    }
  return success();
}

//===- Definitions -----------------------------------------------------------------------------------------------===//

void DGDialect::addGatherOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ops/arrangement/GatherOps.cpp.inc"
      >();
}

} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/ops/arrangement/GatherOps.cpp.inc"
