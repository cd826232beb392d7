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

//===- What all share --------------------------------------------------------------------------------------------===//

static LogicalResult checkIndices(const Rejection &reject, RankedTensorType indices) {
  if (isa<IntegerType>(indices.getElementType()) && !indices.getElementType().isInteger(1))
    return success();
  return reject("has indices ", indices, ", expected integers");
}

static LogicalResult checkDim(const Rejection &reject, RankedTensorType input, int64_t dim) {
  return dim >= 0 && dim < input.getRank()
             ? success()
             : reject("has dimension ", dim, " of ", input, ", expected 0 to ", input.getRank() - 1);
}

static LogicalResult checkReduction(const Rejection &reject, StringRef reduction) {
  if (llvm::is_contained({"none", "add", "mul", "min", "max"}, reduction))
    return success();
  return reject("has reduction \"", reduction, "\", expected none, add, mul, min or max");
}

/// The place that an index names, from the end where it is negative; -1 with an error where there is none.
static int64_t placeAt(Operation *op, const HostTensor &indices, int64_t at, int64_t size) {
  int64_t index = int64_t(indices.data[at]), place = index < 0 ? index + size : index;
  if (place >= 0 && place < size)
    return place;
  op->emitOpError() << "found index " << index << " at place " << at << ", expected " << -size << " to " << size - 1;
  return -1;
}

/// Calls `visit(place, number)` for each slice that indices along `dim` of a tensor of `shape` name: where it lies in
/// the tensor, and where among the slices, both counted in elements. Each slice is `inner` elements.
template <typename Visit>
static LogicalResult forEachSliceAlong(Operation *op, ArrayRef<int64_t> shape, int64_t dim, const HostTensor &indices,
                                       int64_t inner, Visit visit) {
  int64_t outer = ShapedType::getNumElements(shape.take_front(dim)), count = indices.numElements();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count; ++i) {
      int64_t place = placeAt(op, indices, i, shape[dim]);
      if (place < 0)
        return failure();
      visit((o * shape[dim] + place) * inner, (o * count + i) * inner);
    }
  return success();
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

/// What is read and written is what the result and the smaller operand hold.
static OpCost copyCost(Type moved, Type indices, double flopsPerElement) {
  auto type = cast<RankedTensorType>(moved), places = cast<RankedTensorType>(indices);
  double elements = double(type.getNumElements());
  return {flopsPerElement * elements, 2 * elements * type.getElementTypeBitWidth() / 8 +
                                          double(places.getNumElements()) * places.getElementTypeBitWidth() / 8};
}

//===- GatherOp --------------------------------------------------------------------------------------------------===//

FailureOr<Type> GatherOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), indices = tensorOf(op.getIndices());
  int64_t dim = op.getDim();
  if (failed(checkIndices(reject, indices)) || failed(checkDim(reject, input, dim)))
    return failure();
  SmallVector<int64_t> shape(input.getShape().take_front(dim));
  llvm::append_range(shape, indices.getShape());
  llvm::append_range(shape, input.getShape().drop_front(dim + 1));
  return RankedTensorType::get(shape, input.getElementType());
}

Gradients GatherOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<GatherGradOp>(builder, getLoc(), grads[0], getIndices(), getDim(),
                                                 tensorOf(getInput()).getDimSize(getDim())),
                            Value()};
}

ShardingRule GatherOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices());
  int64_t dim = getDim();
  for (int64_t i = 0; i < dim; ++i)
    rule.tie(input.getDimSize(i), {{0, i}}, i);
  for (int64_t i = 0; i < indices.getRank(); ++i)
    rule.tie(indices.getDimSize(i), {{1, i}}, dim + i);
  for (int64_t i = dim + 1; i < input.getRank(); ++i)
    rule.tie(input.getDimSize(i), {{0, i}}, i + indices.getRank() - 1);
  return rule;
}

OpCost GatherOp::getCost() { return copyCost(getResult().getType(), getIndices().getType(), 0); }

IndexBound GatherOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getInput()).getDimSize(getDim()) : 0, /*countsFromEnd=*/true};
}

LogicalResult GatherOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  ArrayRef<int64_t> shape = operands[0].shape;
  int64_t inner = ShapedType::getNumElements(shape.drop_front(getDim() + 1));
  return forEachSliceAlong(*this, shape, getDim(), operands[1], inner, [&](int64_t from, int64_t to) {
    std::copy_n(operands[0].data.begin() + from, inner, results[0].data.begin() + to);
  });
}

//===- GatherGradOp ----------------------------------------------------------------------------------------------===//

FailureOr<Type> GatherGradOp::inferType(Adaptor op, const Rejection &reject) {
  auto grad = tensorOf(op.getGrad()), indices = tensorOf(op.getIndices());
  int64_t dim = op.getDim();
  if (failed(checkIndices(reject, indices)))
    return failure();
  if (dim < 0 || dim + indices.getRank() > grad.getRank() ||
      !mayBeEqual(grad.getShape().slice(dim, indices.getRank()), indices.getShape()))
    return reject("has gradient ", grad, " for indices ", indices, " along dimension ", dim,
                  ", expected the shape of the indices there");
  SmallVector<int64_t> shape(grad.getShape().take_front(dim));
  shape.push_back(op.getSize());
  llvm::append_range(shape, grad.getShape().drop_front(dim + indices.getRank()));
  return RankedTensorType::get(shape, grad.getElementType());
}

Gradients GatherGradOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<GatherOp>(builder, getLoc(), grads[0], getIndices(), getDim()), Value()};
}

/// Cut along the indices, each shard sums its own slices.
ShardingRule GatherGradOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto grad = tensorOf(getGrad()), indices = tensorOf(getIndices());
  int64_t dim = getDim();
  for (int64_t i = 0; i < dim; ++i)
    rule.tie(grad.getDimSize(i), {{0, i}}, i);
  for (int64_t i = 0; i < indices.getRank(); ++i)
    rule.tie(indices.getDimSize(i), {{0, dim + i}, {1, i}}, std::nullopt);
  for (int64_t i = dim + indices.getRank(); i < grad.getRank(); ++i)
    rule.tie(grad.getDimSize(i), {{0, i}}, i - indices.getRank() + 1);
  return rule;
}

IndexBound GatherGradOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? int64_t(getSize()) : 0, /*countsFromEnd=*/true};
}

LogicalResult GatherGradOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  ArrayRef<int64_t> shape = results[0].shape;
  int64_t inner = ShapedType::getNumElements(shape.drop_front(getDim() + 1));
  return forEachSliceAlong(*this, shape, getDim(), operands[1], inner, [&](int64_t to, int64_t from) {
    for (int64_t i = 0; i < inner; ++i)
      results[0].data[to + i] += operands[0].data[from + i];
  });
}

//===- GatherElementsOp and ScatterElementsOp --------------------------------------------------------------------===//

/// The indices have the rank of the input, and are not larger but along `dim`.
static LogicalResult checkElementIndices(const Rejection &reject, RankedTensorType input, RankedTensorType indices,
                                         int64_t dim) {
  if (failed(checkIndices(reject, indices)) || failed(checkDim(reject, input, dim)))
    return failure();
  bool fits = input.getRank() == indices.getRank();
  for (int64_t i = 0; fits && i < input.getRank(); ++i)
    fits = i == dim || input.isDynamicDim(i) || indices.isDynamicDim(i) || indices.getDimSize(i) <= input.getDimSize(i);
  return fits ? success()
              : reject("has indices ", indices, " for ", input,
                       ", expected as many dimensions, none larger but dimension ", dim);
}

/// Calls `visit(place in the input, number of the index)` for each index of an element along `dim`.
template <typename Visit>
static LogicalResult forEachElement(Operation *op, ArrayRef<int64_t> shape, int64_t dim, const HostTensor &indices,
                                    Visit visit) {
  SmallVector<int64_t> strides = stridesOf(shape), others = strides;
  others[dim] = 0;
  int64_t i = 0;
  LogicalResult outcome = success();
  forEachIndex(indices.shape, {others}, [&](ArrayRef<int64_t> at) {
    int64_t place = failed(outcome) ? -1 : placeAt(op, indices, i, shape[dim]);
    if (place < 0)
      outcome = failure();
    else
      visit(at[0] + place * strides[dim], i);
    ++i;
  });
  return outcome;
}

FailureOr<Type> GatherElementsOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), indices = tensorOf(op.getIndices());
  if (failed(checkElementIndices(reject, input, indices, op.getDim())))
    return failure();
  return RankedTensorType::get(indices.getShape(), input.getElementType());
}

Gradients GatherElementsOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value zeros = buildFilled(builder, getLoc(), tensorOf(getInput()), 0);
  return SmallVector<Value>{
      create<ScatterElementsOp>(builder, getLoc(), zeros, getIndices(), grads[0], getDim(), "add"), Value()};
}

ShardingRule GatherElementsOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices());
  for (int64_t i = 0; i < input.getRank(); ++i) {
    if (i == int64_t(getDim()))
      rule.tie(indices.getDimSize(i), {{1, i}}, i);
    else if (input.getDimSize(i) == indices.getDimSize(i))
      rule.tie(indices.getDimSize(i), {{0, i}, {1, i}}, i);
  }
  return rule;
}

OpCost GatherElementsOp::getCost() { return copyCost(getResult().getType(), getIndices().getType(), 0); }

IndexBound GatherElementsOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getInput()).getDimSize(getDim()) : 0, /*countsFromEnd=*/true};
}

LogicalResult GatherElementsOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  return forEachElement(*this, operands[0].shape, getDim(), operands[1],
                        [&](int64_t from, int64_t to) { results[0].data[to] = operands[0].data[from]; });
}

FailureOr<Type> ScatterElementsOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), indices = tensorOf(op.getIndices()), updates = tensorOf(op.getUpdates());
  if (failed(checkElementIndices(reject, input, indices, op.getDim())) ||
      failed(checkReduction(reject, op.getReduction())))
    return failure();
  if (!mayBeEqual(updates.getShape(), indices.getShape()) || updates.getElementType() != input.getElementType())
    return reject("has updates ", updates, " for input ", input, " and indices ", indices,
                  ", expected the input's element type and the shape of the indices");
  return input;
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
    Value weighed = create<MulOp>(builder, loc, grad, op.getResult());
    return SmallVector<Value>{write(grad, op.getUpdates()), Value(),
                              create<DivOp>(builder, loc, read(weighed), op.getUpdates())};
  }
  return op.emitOpError() << "has no gradient with reduction \"" << reduction << "\", expected none, add or mul";
}

Gradients ScatterElementsOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return scatterGradients(
      *this, builder, grads[0],
      [&](Value from) -> Value { return create<GatherElementsOp>(builder, getLoc(), from, getIndices(), getDim()); },
      [&](Value into, Value updates) -> Value {
        return create<ScatterElementsOp>(builder, getLoc(), into, getIndices(), updates, getDim(), getReduction());
      });
}

ShardingRule ScatterElementsOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices());
  for (int64_t i = 0; i < input.getRank(); ++i)
    if (i != int64_t(getDim()) && input.getDimSize(i) == indices.getDimSize(i))
      rule.tie(input.getDimSize(i), {{0, i}, {1, i}, {2, i}}, i);
  return rule;
}

OpCost ScatterElementsOp::getCost() {
  return {double(tensorOf(getUpdates()).getNumElements()), operandAndResultBytes(*this)};
}

IndexBound ScatterElementsOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getInput()).getDimSize(getDim()) : 0, /*countsFromEnd=*/true};
}

LogicalResult ScatterElementsOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  results[0].data = operands[0].data;
  return forEachElement(*this, operands[0].shape, getDim(), operands[1], [&](int64_t to, int64_t from) {
    results[0].data[to] = combine(getReduction(), results[0].data[to], operands[2].data[from]);
  });
}

//===- GatherNdOp and ScatterNdOp --------------------------------------------------------------------------------===//

/// The dimensions of input and indices that an op on rows of indices tells apart.
struct NdShape {
  int64_t batchDims, depth; ///< leading dimensions that both have; dimensions that a row of the indices names
  /// Of the slices: the batch, then the indices without their rows, then the input behind what rows name.
  SmallVector<int64_t> slices;
};

static FailureOr<NdShape> ndShape(const Rejection &reject, RankedTensorType input, RankedTensorType indices,
                                  int64_t batchDims) {
  if (failed(checkIndices(reject, indices)))
    return failure();
  int64_t depth = indices.getRank() > 0 ? indices.getShape().back() : -1;
  bool fits = depth >= 0 && batchDims >= 0 && batchDims < indices.getRank() && batchDims + depth <= input.getRank() &&
              mayBeEqual(input.getShape().take_front(batchDims), indices.getShape().take_front(batchDims));
  if (!fits)
    return reject("has input ", input, " and indices ", indices, " with ", batchDims,
                  " batch dimensions, expected equal batch dimensions and rows of indices that name no more "
                  "dimensions than the input has behind them");
  NdShape shape{batchDims, depth, SmallVector<int64_t>(indices.getShape().drop_back())};
  llvm::append_range(shape.slices, input.getShape().drop_front(batchDims + depth));
  return shape;
}

/// Calls `visit(place in the input, place among the slices)` with the first element of each slice, in order.
template <typename Visit>
static LogicalResult forEachSlice(Operation *op, const HostTensor &input, const HostTensor &indices, int64_t batchDims,
                                  Visit visit) {
  int64_t depth = indices.shape.back(), rows = ShapedType::getNumElements(ArrayRef(indices.shape).drop_back());
  int64_t batch = ShapedType::getNumElements(ArrayRef(indices.shape).take_front(batchDims));
  int64_t inner = ShapedType::getNumElements(ArrayRef(input.shape).drop_front(batchDims + depth));
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

FailureOr<Type> GatherNdOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  auto shape = ndShape(reject, input, tensorOf(op.getIndices()), op.getBatchDims());
  if (failed(shape))
    return failure();
  return RankedTensorType::get(shape->slices, input.getElementType());
}

Gradients GatherNdOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Value zeros = buildFilled(builder, getLoc(), tensorOf(getInput()), 0);
  return SmallVector<Value>{
      create<ScatterNdOp>(builder, getLoc(), zeros, getIndices(), grads[0], getBatchDims(), "add"), Value()};
}

ShardingRule GatherNdOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices()), result = tensorOf(getResult());
  int64_t batchDims = getBatchDims(), numPlaces = indices.getRank() - 1;
  for (int64_t i = 0; i < batchDims; ++i)
    rule.tie(input.getDimSize(i), {{0, i}, {1, i}}, i);
  for (int64_t i = batchDims; i < numPlaces; ++i)
    rule.tie(indices.getDimSize(i), {{1, i}}, i);
  for (int64_t i = numPlaces; i < result.getRank(); ++i)
    rule.tie(result.getDimSize(i), {{0, input.getRank() - (result.getRank() - i)}}, i);
  return rule;
}

OpCost GatherNdOp::getCost() { return copyCost(getResult().getType(), getIndices().getType(), 0); }

IndexBound GatherNdOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? mostPlaces(tensorOf(getInput()), getBatchDims(), tensorOf(getIndices())) : 0,
          /*countsFromEnd=*/true};
}

LogicalResult GatherNdOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  int64_t inner =
      ShapedType::getNumElements(ArrayRef(operands[0].shape).drop_front(getBatchDims() + operands[1].shape.back()));
  return forEachSlice(*this, operands[0], operands[1], getBatchDims(), [&](int64_t from, int64_t to) {
    std::copy_n(operands[0].data.begin() + from, inner, results[0].data.begin() + to);
  });
}

FailureOr<Type> ScatterNdOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), updates = tensorOf(op.getUpdates());
  auto shape = ndShape(reject, input, tensorOf(op.getIndices()), op.getBatchDims());
  if (failed(shape) || failed(checkReduction(reject, op.getReduction())))
    return failure();
  if (!mayBeEqual(updates.getShape(), shape->slices) || updates.getElementType() != input.getElementType())
    return reject("has updates ", updates, ", expected ", RankedTensorType::get(shape->slices, input.getElementType()));
  return input;
}

Gradients ScatterNdOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return scatterGradients(
      *this, builder, grads[0],
      [&](Value from) -> Value { return create<GatherNdOp>(builder, getLoc(), from, getIndices(), getBatchDims()); },
      [&](Value into, Value updates) -> Value {
        return create<ScatterNdOp>(builder, getLoc(), into, getIndices(), updates, getBatchDims(), getReduction());
      });
}

ShardingRule ScatterNdOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput()), indices = tensorOf(getIndices()), updates = tensorOf(getUpdates());
  int64_t batchDims = getBatchDims();
  for (int64_t i = 0; i < batchDims; ++i)
    rule.tie(input.getDimSize(i), {{0, i}, {1, i}, {2, i}}, i);
  for (int64_t i = batchDims + indices.getShape().back(); i < input.getRank(); ++i)
    rule.tie(input.getDimSize(i), {{0, i}, {2, updates.getRank() - (input.getRank() - i)}}, i);
  return rule;
}

OpCost ScatterNdOp::getCost() {
  return {double(tensorOf(getUpdates()).getNumElements()), operandAndResultBytes(*this)};
}

IndexBound ScatterNdOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? mostPlaces(tensorOf(getInput()), getBatchDims(), tensorOf(getIndices())) : 0,
          /*countsFromEnd=*/true};
}

LogicalResult ScatterNdOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  results[0].data = operands[0].data;
  int64_t inner =
      ShapedType::getNumElements(ArrayRef(operands[0].shape).drop_front(getBatchDims() + operands[1].shape.back()));
  return forEachSlice(*this, operands[0], operands[1], getBatchDims(), [&](int64_t to, int64_t from) {
    for (int64_t i = 0; i < inner; ++i)
      results[0].data[to + i] = combine(getReduction(), results[0].data[to + i], operands[2].data[from + i]);
  });
}

//===- OneHotOp --------------------------------------------------------------------------------------------------===//

FailureOr<Type> OneHotOp::inferType(Adaptor op, const Rejection &reject) {
  auto indices = tensorOf(op.getIndices());
  int64_t depth = op.getDepth(), dim = op.getDim();
  if (failed(checkIndices(reject, indices)))
    return failure();
  if (depth < 0 || dim < 0 || dim > indices.getRank() || !op.getType().isIntOrFloat())
    return reject("puts ", indices, " into a dimension ", dim, " of size ", depth, " of ", op.getType(),
                  ", expected dimension 0 to ", indices.getRank(), ", a size not below 0 and an element type");
  SmallVector<int64_t> shape(indices.getShape());
  shape.insert(shape.begin() + dim, depth);
  return RankedTensorType::get(shape, op.getType());
}

ShardingRule OneHotOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto indices = tensorOf(getIndices());
  for (int64_t i = 0; i < indices.getRank(); ++i)
    rule.tie(indices.getDimSize(i), {{0, i}}, i < int64_t(getDim()) ? i : i + 1);
  return rule;
}

void OneHotOp::compute(HostOperands operands, HostResults results) {
  int64_t depth = getDepth(), inner = ShapedType::getNumElements(ArrayRef(results[0].shape).drop_front(getDim() + 1));
  for (int64_t i = 0; i < results[0].numElements(); ++i) {
    int64_t index = int64_t(operands[0].data[i / (inner * depth) * inner + i % inner]);
    results[0].data[i] = (index < 0 ? index + depth : index) == i / inner % depth;
  }
}

//===- ReverseSequenceOp -----------------------------------------------------------------------------------------===//

FailureOr<Type> ReverseSequenceOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), lengths = tensorOf(op.getLengths());
  int64_t batchDim = op.getBatchDim();
  if (failed(checkIndices(reject, lengths)))
    return failure();
  if (batchDim < 0 || batchDim > 1 || input.getRank() < 2 || lengths.getRank() != 1 ||
      !mayBeEqual(lengths.getDimSize(0), input.getDimSize(batchDim)))
    return reject("reverses ", input, " by lengths ", lengths, " with batch dimension ", batchDim,
                  ", expected one length for each of dimension 0 or 1");
  return input;
}

Gradients ReverseSequenceOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<ReverseSequenceOp>(builder, getLoc(), grads[0], getLengths(), getBatchDim()),
                            Value()};
}

ShardingRule ReverseSequenceOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput());
  int64_t batchDim = getBatchDim();
  rule.tie(input.getDimSize(batchDim), {{0, batchDim}, {1, 0}}, batchDim);
  for (int64_t i = 2; i < input.getRank(); ++i)
    rule.tie(input.getDimSize(i), {{0, i}}, i);
  return rule;
}

/// A sequence may be as long as there are steps.
IndexBound ReverseSequenceOp::getIndexBound(unsigned operand) {
  return {operand == 1 ? tensorOf(getInput()).getDimSize(1 - getBatchDim()) + 1 : 0};
}

LogicalResult ReverseSequenceOp::evaluate(HostOperands operands, HostResults results, const RunScalars &) {
  const HostTensor &input = operands[0];
  int64_t inner = ShapedType::getNumElements(ArrayRef(input.shape).drop_front(2)), batchDim = getBatchDim(),
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

} // namespace dg::ir

#define DG_OPS "ir/ops/arrangement/GatherOps.cpp.inc"
#define DG_ADD_OPS addGatherOps
#include "ir/ops/Family.inc"
