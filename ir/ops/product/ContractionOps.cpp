// SPDX-License-Identifier: Apache-2.0
// Matrix products, and the layers that are made of them. Convolutions are in ConvolutionOps.cpp.
#include "ir/ops/product/ContractionOps.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/TypeInference.h"

using namespace mlir;

namespace dg::ir {

//===- MatmulOp --------------------------------------------------------------------------------------------------===//

namespace {
/// The matrices of an operand: a vector is a row on the left and a column on the right.
struct Matrices {
  SmallVector<int64_t> batch;
  int64_t rows, columns; ///< as multiplied
  bool isVector;

  Matrices(RankedTensorType type, bool isTransposed, bool isLeft) : isVector(type.getRank() == 1) {
    ArrayRef<int64_t> shape = type.getShape();
    if (isVector) {
      rows = isLeft ? 1 : shape[0];
      columns = isLeft ? shape[0] : 1;
      return;
    }
    batch.assign(shape.begin(), shape.end() - 2);
    rows = shape.end()[isTransposed ? -1 : -2];
    columns = shape.end()[isTransposed ? -2 : -1];
  }
};
} // namespace

/// The type in which factors of these types are multiplied; null where they do not go together.
static Type factorType(Type lhs, Type rhs) {
  if (lhs == rhs || (isHalf(lhs) && rhs.isF32()))
    return lhs;
  return lhs.isF32() && isHalf(rhs) ? rhs : Type();
}

Type MatmulOp::getFactorType() {
  return factorType(tensorOf(getLhs()).getElementType(), tensorOf(getRhs()).getElementType());
}

FailureOr<Type> MatmulOp::inferType(Adaptor op, const Rejection &reject) {
  auto lhs = tensorOf(op.getLhs()), rhs = tensorOf(op.getRhs());
  Type element = factorType(lhs.getElementType(), rhs.getElementType());
  if (lhs.getRank() < 1 || rhs.getRank() < 1 || !element || isBool(element))
    return reject("has operands ", lhs, " and ", rhs,
                  ", expected two tensors of rank 1 or more and of the same element type, floats or integers");
  if (op.getTo() && (!isHalf(element) || !op.getTo()->isF32()))
    return reject("multiplies elements of type ", element, " to ", *op.getTo(), ", expected f16 or bf16 to f32");
  Matrices left(lhs, op.getTransposeLhs(), true), right(rhs, op.getTransposeRhs(), false);
  if (!mayBeEqual(left.columns, right.rows))
    return reject("contracts ", left.columns, " of lhs ", lhs, " with ", right.rows, " of rhs ", rhs,
                  ", expected equal sizes");
  auto shape = broadcastShapes(left.batch, right.batch);
  if (!shape)
    return reject("has operands ", lhs, " and ", rhs,
                  ", expected equal sizes, or 1, in front of the last two dimensions");
  if (!left.isVector)
    shape->push_back(left.rows);
  if (!right.isVector)
    shape->push_back(right.columns);
  return RankedTensorType::get(*shape, op.getTo().value_or(element));
}

bool MatmulOp::isPrimitive() {
  auto lhs = tensorOf(getLhs()), rhs = tensorOf(getRhs());
  return lhs.getRank() >= 2 && lhs.getRank() == rhs.getRank() &&
         lhs.getShape().drop_back(2) == rhs.getShape().drop_back(2);
}

/// One matrix on the right is multiplied with all rows of the left at once; else both are repeated to equal batches.
SmallVector<Value> MatmulOp::decompose(OpBuilder &builder) {
  if (isPrimitive())
    return {};
  Matrices left(tensorOf(getLhs()), getTransposeLhs(), true), right(tensorOf(getRhs()), getTransposeRhs(), false);
  bool turnsLeft = getTransposeLhs() && !left.isVector, turnsRight = getTransposeRhs() && !right.isVector;
  auto shapeOf = [](ArrayRef<int64_t> batch, const Matrices &matrices, bool isTurned) {
    SmallVector<int64_t> shape(batch);
    shape.append({isTurned ? matrices.columns : matrices.rows, isTurned ? matrices.rows : matrices.columns});
    return shape;
  };
  Value lhs = buildReshape(builder, getLoc(), getLhs(), shapeOf(left.batch, left, turnsLeft));
  Value rhs = buildReshape(builder, getLoc(), getRhs(), shapeOf(right.batch, right, turnsRight));
  if (!turnsLeft && llvm::all_of(right.batch, [](int64_t size) { return size == 1; })) {
    int64_t rows = left.rows;
    for (int64_t size : left.batch)
      rows *= size;
    lhs = buildReshape(builder, getLoc(), lhs, {rows, left.columns});
    rhs = buildReshape(builder, getLoc(), rhs, shapeOf({}, right, turnsRight));
  } else {
    SmallVector<int64_t> batch = *broadcastShapes(left.batch, right.batch);
    auto repeat = [&](Value value, SmallVector<int64_t> shape) -> Value {
      return tensorOf(value).getShape() == ArrayRef(shape) ? value : create<ExpandOp>(builder, getLoc(), value, shape);
    };
    lhs = repeat(lhs, shapeOf(batch, left, turnsLeft));
    rhs = repeat(rhs, shapeOf(batch, right, turnsRight));
  }
  Value product = create<MatmulOp>(builder, getLoc(), lhs, rhs, turnsLeft, turnsRight, getToAttr());
  return {buildReshape(builder, getLoc(), product, tensorOf(getResult()).getShape())};
}

/// With A' and B' the operands as multiplied: dA' = dC · B'ᵀ and dB' = A'ᵀ · dC, each transposed back where its operand
/// was.
Gradients MatmulOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  if (!isPrimitive())
    return emitOpError("multiplies different batches, or vectors: run --dg-decompose first");
  if (tensorOf(getLhs()).getElementType() != tensorOf(getRhs()).getElementType() || getTo())
    return emitOpError("has a cast as part of it, which --dg-fuse-casts puts there after gradients are taken");
  auto product = [&](Value lhs, Value rhs, bool transposeLhs, bool transposeRhs) -> Value {
    return create<MatmulOp>(builder, getLoc(), lhs, rhs, transposeLhs, transposeRhs);
  };
  bool ta = getTransposeLhs(), tb = getTransposeRhs();
  Value lhs = ta ? product(getRhs(), grads[0], tb, true) : product(grads[0], getRhs(), false, !tb);
  Value rhs = tb ? product(grads[0], getLhs(), true, ta) : product(getLhs(), grads[0], !ta, false);
  return SmallVector<Value>{lhs, rhs};
}

ShardingRule MatmulOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  if (!isPrimitive())
    return rule; // its parts have rules
  auto lhs = tensorOf(getLhs()), result = tensorOf(getResult());
  int64_t rank = lhs.getRank();
  for (int64_t dim = 0; dim < rank - 2; ++dim) {
    int32_t factor = rule.addFactor(lhs.getDimSize(dim));
    rule.operands[0][dim].push_back(factor);
    rule.operands[1][dim].push_back(factor);
    rule.results[0][dim].push_back(factor);
  }
  int64_t lhsK = rank - (getTransposeLhs() ? 2 : 1), rhsK = rank - (getTransposeRhs() ? 1 : 2);
  int32_t m = rule.addFactor(result.getDimSize(rank - 2)), n = rule.addFactor(result.getDimSize(rank - 1));
  int32_t k = rule.addFactor(lhs.getDimSize(lhsK));
  rule.operands[0][2 * rank - 3 - lhsK].push_back(m);
  rule.operands[0][lhsK].push_back(k);
  rule.operands[1][rhsK].push_back(k);
  rule.operands[1][2 * rank - 3 - rhsK].push_back(n);
  rule.results[0][rank - 2].push_back(m);
  rule.results[0][rank - 1].push_back(n);
  return rule;
}

OpCost MatmulOp::getCost() {
  Matrices left(tensorOf(getLhs()), getTransposeLhs(), true);
  return {2 * double(left.columns) * double(tensorOf(getResult()).getNumElements()), operandAndResultBytes(*this)};
}

void MatmulOp::compute(HostOperands operands, HostResults results) {
  Matrices left(tensorOf(getLhs()), getTransposeLhs(), true), right(tensorOf(getRhs()), getTransposeRhs(), false);
  int64_t m = left.rows, k = left.columns, n = right.columns;
  bool turnsLeft = getTransposeLhs() && !left.isVector, turnsRight = getTransposeRhs() && !right.isVector;
  int64_t lhsRow = turnsLeft ? 1 : k, lhsColumn = turnsLeft ? m : 1;
  int64_t rhsRow = turnsRight ? 1 : n, rhsColumn = turnsRight ? k : 1;
  SmallVector<int64_t> batch = *broadcastShapes(left.batch, right.batch);
  double *out = results[0].data.data();
  forEachIndex(batch, {broadcastStrides(left.batch, batch), broadcastStrides(right.batch, batch)},
               [&](ArrayRef<int64_t> at) {
                 const double *lhs = operands[0].data.data() + at[0] * m * k;
                 const double *rhs = operands[1].data.data() + at[1] * k * n;
                 for (int64_t row = 0; row < m; ++row)
                   for (int64_t i = 0; i < k; ++i) {
                     double scalar = lhs[row * lhsRow + i * lhsColumn];
                     for (int64_t column = 0; column < n; ++column)
                       out[row * n + column] += scalar * rhs[i * rhsRow + column * rhsColumn];
                   }
                 out += m * n;
               });
}

//===- LinearOp --------------------------------------------------------------------------------------------------===//

FailureOr<Type> LinearOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), weight = tensorOf(op.getWeight());
  if (input.getRank() < 2 || weight.getRank() != 2 || input.getElementType() != weight.getElementType())
    return reject("has input ", input, " and weight ", weight,
                  ", expected an input of rank 2 or more and a weight [out, in] of the same element type");
  if (isBool(input.getElementType()))
    return reject("has input ", input, ", expected floats or integers (dg.cast makes them)");
  if (!mayBeEqual(input.getShape().back(), weight.getDimSize(1)))
    return reject("contracts ", input.getShape().back(), " of input ", input, " with ", weight.getDimSize(1),
                  " of weight ", weight, ", expected equal sizes");
  if (op.getBias()) {
    auto bias = tensorOf(op.getBias());
    if (bias.getRank() != 1 || !mayBeEqual(bias.getDimSize(0), weight.getDimSize(0)) ||
        bias.getElementType() != weight.getElementType())
      return reject("has bias ", bias, ", expected one of ", weight.getDimSize(0),
                    " elements, the first size of weight ", weight);
  }
  SmallVector<int64_t> shape(input.getShape());
  shape.back() = weight.getDimSize(0);
  return RankedTensorType::get(shape, input.getElementType());
}

SmallVector<Value> LinearOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  int64_t numRows = 1;
  for (int64_t size : input.getShape().drop_back())
    numRows *= size;
  Value rows = buildReshape(builder, getLoc(), getInput(), {numRows, input.getShape().back()});
  Value result = create<MatmulOp>(builder, getLoc(), rows, getWeight(), /*transpose_lhs=*/false,
                                  /*transpose_rhs=*/true);
  if (getBias())
    result = create<AddOp>(builder, getLoc(), result, getBias());
  return {buildReshape(builder, getLoc(), result, tensorOf(getResult()).getShape())};
}

void LinearOp::compute(HostOperands operands, HostResults results) {
  int64_t in = rowSize(operands[0]), out = rowSize(results[0]);
  for (int64_t row = 0; row < numRows(results[0]); ++row)
    for (int64_t column = 0; column < out; ++column) {
      double sum = operands.size() > 2 ? operands[2].data[column] : 0;
      for (int64_t i = 0; i < in; ++i)
        sum += operands[0].data[row * in + i] * operands[1].data[column * in + i];
      results[0].data[row * out + column] = sum;
    }
}

} // namespace dg::ir

#define DG_OPS "ir/ops/product/ContractionOps.cpp.inc"
#define DG_ADD_OPS addContractionOps
#include "ir/ops/Family.inc"
