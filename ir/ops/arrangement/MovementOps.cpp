// SPDX-License-Identifier: Apache-2.0
// Ops that copy elements to other places: windows, borders, joins, and tensors that follow a pattern.
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/ShardingRules.h"
#include "ir/rules/TypeInference.h"

using namespace mlir;

namespace dg::ir {

/// The sum of all elements, as a tensor of the type of one of them.
static Value sumOfAll(OpBuilder &builder, Location loc, Value value) {
  SmallVector<int64_t> dims = llvm::to_vector(llvm::seq<int64_t>(0, tensorOf(value).getRank()));
  return create<ReduceSumOp>(builder, loc, value, dims, /*keep=*/false);
}

/// Operand 0 and result 0 move together along the dimensions for which `isKept` holds.
static ShardingRule keptDimsRule(Operation *op, llvm::function_ref<bool(int64_t)> isKept) {
  ShardingRule rule = emptyShardingRule(op);
  auto result = tensorOf(op->getResult(0));
  for (int64_t dim = 0; dim < result.getRank(); ++dim)
    if (isKept(dim)) {
      int32_t factor = rule.addFactor(result.getDimSize(dim));
      rule.operands[0][dim].push_back(factor);
      rule.results[0][dim].push_back(factor);
    }
  return rule;
}

/// The strides of a tensor times a step in each dimension.
static SmallVector<int64_t> steppedStrides(ArrayRef<int64_t> shape, llvm::function_ref<int64_t(size_t)> stepAt) {
  SmallVector<int64_t> strides = stridesOf(shape);
  for (size_t dim = 0; dim < strides.size(); ++dim)
    strides[dim] *= stepAt(dim);
  return strides;
}

static int64_t offsetAt(ArrayRef<int64_t> shape, ArrayRef<int64_t> index) {
  int64_t offset = 0;
  for (auto [stride, at] : llvm::zip_equal(stridesOf(shape), index))
    offset += stride * at;
  return offset;
}

//===- SliceOp ---------------------------------------------------------------------------------------------------===//

FailureOr<Type> SliceOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  size_t rank = size_t(input.getRank());
  if (op.getStarts().size() != rank || op.getSizes().size() != rank || (op.getSteps() && op.getSteps()->size() != rank))
    return reject("slices ", input, " with starts ", op.getStartsAttr(), ", sizes ", op.getSizesAttr(), " and steps ",
                  op.getStepsAttr(), ", expected one of each for ", rank, " dimensions");
  SmallVector<int64_t> shape;
  for (size_t dim = 0; dim < rank; ++dim) {
    int64_t start = op.getStarts()[dim], size = op.getSizes()[dim], step = op.getSteps() ? (*op.getSteps())[dim] : 1,
            available = input.getDimSize(dim);
    if (step == 0)
      return reject("has step 0 in dimension ", dim, ", expected a step above or below 0");
    if (ShapedType::isDynamic(available)) {
      if (start != 0 || size != -1 || step != 1)
        return reject("cuts dimension ", dim, " of ", input,
                      ", whose size is not known, expected start 0, size -1 and step 1 there");
      shape.push_back(available);
      continue;
    }
    // As many as there are between the start and the end that the step leads to.
    int64_t most = start < 0 || start >= available ? 0
                   : step > 0                      ? (available - start - 1) / step + 1
                                                   : 1 - start / step;
    if (size < -1 || size > most || (size == -1 && start != available && most == 0 && available != 0))
      return reject("takes ", size, " elements from ", start, " by ", step, " of dimension ", dim, " of ", input,
                    ", expected at most ", most);
    shape.push_back(size == -1 ? most : size);
  }
  return RankedTensorType::get(shape, input.getElementType());
}

static int64_t stepOf(SliceOp op, size_t dim) { return op.getSteps() ? (*op.getSteps())[dim] : 1; }

/// Elements go back to where they came from, between zeros; what was read backwards is turned first.
Gradients SliceOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  auto input = tensorOf(getInput()), result = tensorOf(getResult());
  size_t rank = size_t(input.getRank());
  if (result.getNumElements() == 0)
    return SmallVector<Value>{buildFilled(builder, getLoc(), input, 0)};
  SmallVector<int64_t> starts(rank, 0), turn(rank, 1), low(rank), high(rank), interior(rank);
  for (size_t dim = 0; dim < rank; ++dim) {
    int64_t step = stepOf(*this, dim), first = getStarts()[dim], last = first + step * (result.getDimSize(dim) - 1);
    if (step < 0) {
      starts[dim] = result.getDimSize(dim) - 1;
      turn[dim] = -1;
      std::swap(first, last);
    }
    low[dim] = first;
    high[dim] = input.getDimSize(dim) - 1 - last;
    interior[dim] = std::abs(step) - 1;
  }
  Value grad = grads[0];
  if (llvm::is_contained(turn, -1))
    grad = create<SliceOp>(builder, getLoc(), grad, starts, SmallVector<int64_t>(rank, -1),
                           builder.getDenseI64ArrayAttr(turn));
  return SmallVector<Value>{
      create<PadConstantOp>(builder, getLoc(), grad, Value(), low, high, builder.getDenseI64ArrayAttr(interior))};
}

ShardingRule SliceOp::getShardingRule() {
  return keptDimsRule(*this, [&](int64_t dim) {
    return tensorOf(getInput()).getDimSize(dim) == tensorOf(getResult()).getDimSize(dim) && stepOf(*this, dim) == 1;
  });
}

void SliceOp::localize(TypeRange resultTypes) { setSizes(cast<RankedTensorType>(resultTypes[0]).getShape()); }

void SliceOp::compute(HostOperands operands, HostResults results) {
  int64_t start = offsetAt(operands[0].shape, getStarts());
  auto out = results[0].data.begin();
  forEachIndex(results[0].shape, {steppedStrides(operands[0].shape, [&](size_t dim) { return stepOf(*this, dim); })},
               [&](ArrayRef<int64_t> at) { *out++ = operands[0].data[start + at[0]]; });
}

//===- PadConstantOp ---------------------------------------------------------------------------------------------===//

FailureOr<Type> PadConstantOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput());
  size_t rank = size_t(input.getRank());
  auto isBad = [&](ArrayRef<int64_t> numbers) {
    return numbers.size() != rank || llvm::any_of(numbers, [](int64_t number) { return number < 0; });
  };
  if (isBad(op.getLow()) || isBad(op.getHigh()) || (op.getInterior() && isBad(*op.getInterior())))
    return reject("pads ", input, " with low ", op.getLowAttr(), ", high ", op.getHighAttr(), " and interior ",
                  op.getInteriorAttr(), ", expected ", rank, " numbers of each, none below 0");
  if (op.getFill() && (tensorOf(op.getFill()).getNumElements() != 1 ||
                       tensorOf(op.getFill()).getElementType() != input.getElementType()))
    return reject("fills ", input, " with ", op.getFill().getType(), ", expected one element of the same type");
  SmallVector<int64_t> shape;
  for (size_t dim = 0; dim < rank; ++dim) {
    int64_t size = input.getDimSize(dim), border = op.getLow()[dim] + op.getHigh()[dim],
            between = op.getInterior() ? (*op.getInterior())[dim] : 0;
    if (ShapedType::isDynamic(size) && (border != 0 || between != 0))
      return reject("pads dimension ", dim, " of ", input, ", whose size is not known, expected 0 there");
    shape.push_back(ShapedType::isDynamic(size) ? size : size + border + between * std::max<int64_t>(size - 1, 0));
  }
  return RankedTensorType::get(shape, input.getElementType());
}

static int64_t interiorOf(PadConstantOp op, size_t dim) { return op.getInterior() ? (*op.getInterior())[dim] : 0; }

Gradients PadConstantOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  auto input = tensorOf(getInput());
  SmallVector<int64_t> steps;
  for (int64_t dim = 0; dim < input.getRank(); ++dim)
    steps.push_back(interiorOf(*this, dim) + 1);
  Value inner =
      create<SliceOp>(builder, getLoc(), grads[0], getLow(), input.getShape(), builder.getDenseI64ArrayAttr(steps));
  SmallVector<Value> gradients{inner};
  if (getFill()) {
    Value border =
        create<SubOp>(builder, getLoc(), sumOfAll(builder, getLoc(), grads[0]), sumOfAll(builder, getLoc(), inner));
    gradients.push_back(buildReshape(builder, getLoc(), border, tensorOf(getFill()).getShape()));
  }
  return gradients;
}

ShardingRule PadConstantOp::getShardingRule() {
  return keptDimsRule(
      *this, [&](int64_t dim) { return getLow()[dim] == 0 && getHigh()[dim] == 0 && interiorOf(*this, dim) == 0; });
}

void PadConstantOp::compute(HostOperands operands, HostResults results) {
  std::fill(results[0].data.begin(), results[0].data.end(), operands.size() > 1 ? operands[1].data[0] : 0.0);
  int64_t start = offsetAt(results[0].shape, getLow());
  auto in = operands[0].data.begin();
  forEachIndex(operands[0].shape,
               {steppedStrides(results[0].shape, [&](size_t dim) { return interiorOf(*this, dim) + 1; })},
               [&](ArrayRef<int64_t> at) { results[0].data[start + at[0]] = *in++; });
}

//===- ConcatOp --------------------------------------------------------------------------------------------------===//

FailureOr<Type> ConcatOp::inferType(Adaptor op, const Rejection &reject) {
  if (op.getInputs().empty())
    return reject("has no operands, expected at least one");
  auto first = tensorOf(op.getInputs()[0]);
  int64_t dim = op.getDim();
  if (dim < 0 || dim >= first.getRank())
    return reject("joins ", first, " along dimension ", dim, ", expected 0 to ", first.getRank() - 1);
  SmallVector<int64_t> shape(first.getShape());
  for (Value operand : op.getInputs().drop_front()) {
    auto type = tensorOf(operand);
    SmallVector<int64_t> expected(shape);
    if (type.getRank() == first.getRank())
      expected[dim] = type.getDimSize(dim);
    if (type.getElementType() != first.getElementType() || !mayBeEqual(type.getShape(), expected))
      return reject("joins ", first, " and ", type, " along dimension ", dim,
                    ", expected equal element types and sizes in all other dimensions");
    for (int64_t other = 0; other < first.getRank(); ++other)
      if (other != dim && ShapedType::isDynamic(shape[other]))
        shape[other] = type.getDimSize(other);
    bool isKnown = !ShapedType::isDynamic(shape[dim]) && !type.isDynamicDim(dim);
    shape[dim] = isKnown ? shape[dim] + type.getDimSize(dim) : ShapedType::kDynamic;
  }
  return RankedTensorType::get(shape, first.getElementType());
}

Gradients ConcatOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  SmallVector<Value> gradients;
  SmallVector<int64_t> starts(tensorOf(getResult()).getRank(), 0);
  for (Value operand : getInputs()) {
    ArrayRef<int64_t> shape = tensorOf(operand).getShape();
    gradients.push_back(create<SliceOp>(builder, getLoc(), grads[0], starts, shape, DenseI64ArrayAttr()));
    starts[getDim()] += shape[getDim()];
  }
  return gradients;
}

ShardingRule ConcatOp::getShardingRule() { return lineRule(*this, int64_t(getDim())); }

void ConcatOp::compute(HostOperands operands, HostResults results) {
  SmallVector<int64_t> strides = stridesOf(results[0].shape);
  int64_t start = 0;
  for (const HostTensor &operand : operands) {
    auto in = operand.data.begin();
    forEachIndex(operand.shape, {strides}, [&](ArrayRef<int64_t> at) { results[0].data[start + at[0]] = *in++; });
    start += operand.shape[getDim()] * strides[getDim()];
  }
}

//===- TriluOp ---------------------------------------------------------------------------------------------------===//

FailureOr<Type> TriluOp::inferType(Adaptor op, const Rejection &reject) {
  if (tensorOf(op.getInput()).getRank() < 2)
    return reject("takes a triangle of ", op.getInput().getType(), ", expected at least two dimensions");
  return op.getInput().getType();
}

Gradients TriluOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  return SmallVector<Value>{create<TriluOp>(builder, getLoc(), grads[0], getUpper(), getDiagonal())};
}

/// An element must know its place in the matrix.
ShardingRule TriluOp::getShardingRule() { return leadingRule(*this, tensorOf(getInput()).getRank() - 2, {0}, {0}); }

void TriluOp::compute(HostOperands operands, HostResults results) {
  int64_t rows = results[0].shape.end()[-2], columns = results[0].shape.back(), diagonal = getDiagonal();
  for (int64_t i = 0; i < results[0].numElements(); ++i) {
    int64_t distance = i % columns - i / columns % rows;
    if (getUpper() ? distance >= diagonal : distance <= diagonal)
      results[0].data[i] = operands[0].data[i];
  }
}

//===- IotaOp ----------------------------------------------------------------------------------------------------===//

LogicalResult IotaOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  int64_t dim = getDim();
  if (!type || !type.hasStaticShape() || dim < 0 || dim >= type.getRank())
    return emitOpError() << "counts along dimension " << dim << " of " << getType()
                         << ", expected a dimension of a tensor whose sizes are all numbers";
  return success();
}

ShardingRule IotaOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto type = tensorOf(getResult());
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim != int64_t(getDim()))
      rule.results[0][dim].push_back(rule.addFactor(type.getDimSize(dim)));
  return rule;
}

void IotaOp::localize(TypeRange resultTypes) { setType(resultTypes[0]); }

void IotaOp::compute(HostOperands, HostResults results) {
  int64_t dim = getDim(), stride = stridesOf(results[0].shape)[dim], size = results[0].shape[dim];
  for (int64_t i = 0; i < results[0].numElements(); ++i)
    results[0].data[i] = getStart().convertToDouble() + getStep().convertToDouble() * double(i / stride % size);
}

} // namespace dg::ir

#define DG_OPS "ir/ops/arrangement/MovementOps.cpp.inc"
#define DG_ADD_OPS addMovementOps
#include "ir/ops/Family.inc"
