// SPDX-License-Identifier: Apache-2.0
// Matrix products, and the layers that are made of them. Convolutions are in ConvolutionOps.cpp.
#include "ir/ContractionOps.h"
#include "ir/ElementwiseOps.h"
#include "ir/GradientBuilding.h"
#include "ir/HostTensorAccess.h"
#include "ir/TypeInference.h"

using namespace mlir;

namespace dg::ir {

using Gradients = FailureOr<SmallVector<Value>>;

//===- MatmulOp --------------------------------------------------------------------------------------------------===//

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                         SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto lhs = tensorOf(op.getLhs()), rhs = tensorOf(op.getRhs());
  int64_t rank = lhs.getRank();
  if (rank < 2 || rank != rhs.getRank() || lhs.getElementType() != rhs.getElementType())
    return reject<MatmulOp>(location, "has operands ", lhs, " and ", rhs,
                            ", expected two tensors of the same rank, 2 or more, and of the same element type");
  if (!mayBeEqual(lhs.getShape().drop_back(2), rhs.getShape().drop_back(2)))
    return reject<MatmulOp>(location, "has operands ", lhs, " and ", rhs,
                            ", expected equal sizes in front of the last two dimensions");
  int64_t m = lhs.getDimSize(rank - (op.getTransposeLhs() ? 1 : 2));
  int64_t k = lhs.getDimSize(rank - (op.getTransposeLhs() ? 2 : 1));
  int64_t rhsK = rhs.getDimSize(rank - (op.getTransposeRhs() ? 1 : 2));
  int64_t n = rhs.getDimSize(rank - (op.getTransposeRhs() ? 2 : 1));
  if (!mayBeEqual(k, rhsK))
    return reject<MatmulOp>(location, "contracts ", k, " of lhs ", lhs, " with ", rhsK, " of rhs ", rhs,
                            ", expected equal sizes");
  SmallVector<int64_t> shape(lhs.getShape().drop_back(2));
  shape.append({m, n});
  inferred.push_back(RankedTensorType::get(shape, lhs.getElementType()));
  return success();
}

/// With A' and B' the operands as multiplied: dA' = dC · B'ᵀ and dB' = A'ᵀ · dC, each transposed back where its operand
/// was.
Gradients MatmulOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  auto product = [&](Value lhs, Value rhs, bool transposeLhs, bool transposeRhs) -> Value {
    return builder.create<MatmulOp>(getLoc(), lhs, rhs, transposeLhs, transposeRhs, PlaceAttr());
  };
  bool ta = getTransposeLhs(), tb = getTransposeRhs();
  Value lhs = ta ? product(getRhs(), grads[0], tb, true) : product(grads[0], getRhs(), false, !tb);
  Value rhs = tb ? product(grads[0], getLhs(), true, ta) : product(getLhs(), grads[0], !ta, false);
  return SmallVector<Value>{lhs, rhs};
}

ShardingRule MatmulOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
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
  auto lhs = tensorOf(getLhs());
  double k = lhs.getDimSize(lhs.getRank() - (getTransposeLhs() ? 2 : 1));
  return {2 * k * tensorOf(getResult()).getNumElements(), operandAndResultBytes(*this)};
}

LogicalResult MatmulOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                 const RunScalars &) {
  size_t rank = results[0].shape.size();
  int64_t m = results[0].shape[rank - 2], n = results[0].shape[rank - 1];
  int64_t k = operands[0].shape[rank - (getTransposeLhs() ? 2 : 1)];
  int64_t lhsRow = getTransposeLhs() ? 1 : k, lhsColumn = getTransposeLhs() ? m : 1;
  int64_t rhsRow = getTransposeRhs() ? 1 : n, rhsColumn = getTransposeRhs() ? k : 1;
  int64_t numMatrices = m * n == 0 ? 0 : results[0].numElements() / (m * n);
  for (int64_t matrix = 0; matrix < numMatrices; ++matrix) {
    const double *lhs = operands[0].data.data() + matrix * m * k, *rhs = operands[1].data.data() + matrix * k * n;
    double *out = results[0].data.data() + matrix * m * n;
    for (int64_t row = 0; row < m; ++row)
      for (int64_t i = 0; i < k; ++i) {
        double scalar = lhs[row * lhsRow + i * lhsColumn];
        for (int64_t column = 0; column < n; ++column)
          out[row * n + column] += scalar * rhs[i * rhsRow + column * rhsColumn];
      }
  }
  return success();
}

//===- LinearOp --------------------------------------------------------------------------------------------------===//

LogicalResult LinearOp::inferReturnTypes(MLIRContext *context, std::optional<Location> location, Adaptor op,
                                         SmallVectorImpl<Type> &inferred) {
  if (deferInference(context, op.getOperands(), 1, inferred))
    return success();
  auto input = tensorOf(op.getInput()), weight = tensorOf(op.getWeight());
  if (input.getRank() < 2 || weight.getRank() != 2 || input.getElementType() != weight.getElementType())
    return reject<LinearOp>(location, "has input ", input, " and weight ", weight,
                            ", expected an input of rank 2 or more and a weight [out, in] of the same element type");
  if (!mayBeEqual(input.getShape().back(), weight.getDimSize(1)))
    return reject<LinearOp>(location, "contracts ", input.getShape().back(), " of input ", input, " with ",
                            weight.getDimSize(1), " of weight ", weight, ", expected equal sizes");
  if (op.getBias()) {
    auto bias = tensorOf(op.getBias());
    if (bias.getRank() != 1 || !mayBeEqual(bias.getDimSize(0), weight.getDimSize(0)) ||
        bias.getElementType() != weight.getElementType())
      return reject<LinearOp>(location, "has bias ", bias, ", expected one of ", weight.getDimSize(0),
                              " elements, the first size of weight ", weight);
  }
  SmallVector<int64_t> shape(input.getShape());
  shape.back() = weight.getDimSize(0);
  inferred.push_back(RankedTensorType::get(shape, input.getElementType()));
  return success();
}

SmallVector<Value> LinearOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  int64_t width = input.getShape().back();
  Value rows = buildReshape(builder, getLoc(), getInput(), {input.getNumElements() / width, width});
  Value result = builder.create<MatmulOp>(getLoc(), rows, getWeight(), /*transpose_lhs=*/false,
                                          /*transpose_rhs=*/true, PlaceAttr());
  if (getBias())
    result = builder.create<AddOp>(getLoc(), result, getBias(), PlaceAttr());
  return {buildReshape(builder, getLoc(), result, tensorOf(getResult()).getShape())};
}

LogicalResult LinearOp::evaluate(ArrayRef<HostTensor> operands, MutableArrayRef<HostTensor> results,
                                 const RunScalars &) {
  int64_t in = rowSize(operands[0]), out = rowSize(results[0]);
  for (int64_t row = 0; row < numRows(results[0]); ++row)
    for (int64_t column = 0; column < out; ++column) {
      double sum = operands.size() > 2 ? operands[2].data[column] : 0;
      for (int64_t i = 0; i < in; ++i)
        sum += operands[0].data[row * in + i] * operands[1].data[column * in + i];
      results[0].data[row * out + column] = sum;
    }
  return success();
}

//===- Definitions -----------------------------------------------------------------------------------------------===//

void DGDialect::addContractionOps() {
  addOperations<
#define GET_OP_LIST
#include "ir/ContractionOps.cpp.inc"
      >();
}

} // namespace dg::ir

#define GET_OP_CLASSES
#include "ir/ContractionOps.cpp.inc"
