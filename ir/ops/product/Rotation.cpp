// SPDX-License-Identifier: Apache-2.0
// The rotation of queries and keys by their tokens' places (RoFormer, arXiv 2104.09864).
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/product/AttentionOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/PartsGradient.h"
#include "ir/rules/TypeInference.h"

using namespace mlir;

namespace dg::ir {

/// Turns the pairs of heads of `width` elements; `row` counts batch, token and head.
static void turnPairs(HostOperands operands, HostResults results, int64_t heads, int64_t width, bool isInterleaved) {
  int64_t pairs = operands[1].shape.back(), numAngles = operands[1].numElements();
  results[0].data = operands[0].data;
  for (int64_t row = 0; row < operands[0].numElements() / width; ++row)
    for (int64_t pair = 0; pair < pairs; ++pair) {
      int64_t first = row * width + (isInterleaved ? 2 * pair : pair), second = first + (isInterleaved ? 1 : pairs);
      int64_t angle = (row / heads * pairs + pair) % numAngles;
      double cos = operands[1].data[angle], sin = operands[2].data[angle];
      results[0].data[first] = operands[0].data[first] * cos - operands[0].data[second] * sin;
      results[0].data[second] = operands[0].data[second] * cos + operands[0].data[first] * sin;
    }
}

/// Whether angles and elements have types that go together: [tokens, pairs] or [batch, tokens, pairs] beside an input
/// [batch, tokens, …] with heads of `width`.
static bool anglesFit(RankedTensorType input, RankedTensorType cos, RankedTensorType sin, int64_t width) {
  return mayBeEqual(cos.getShape(), sin.getShape()) && cos.getElementType() == input.getElementType() &&
         sin.getElementType() == input.getElementType() && (cos.getRank() == 2 || cos.getRank() == 3) &&
         mayBeEqual(cos.getShape().drop_back(), input.getShape().slice(3 - cos.getRank(), cos.getRank() - 1)) &&
         !cos.isDynamicDim(cos.getRank() - 1) && 2 * cos.getShape().back() <= width;
}

//===- RotaryOp --------------------------------------------------------------------------------------------------===//

FailureOr<Type> RotaryOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), cos = tensorOf(op.getCos()), sin = tensorOf(op.getSin());
  int64_t heads = op.getHeads();
  if (input.getRank() != 3 || input.isDynamicDim(2) || heads < 1 || input.getDimSize(2) % heads != 0)
    return reject("cuts ", input, " into ", heads,
                  " heads, expected [batch, tokens, width] with a number that divides the width");
  if (!anglesFit(input, cos, sin, input.getDimSize(2) / heads))
    return reject("turns ", input, " with ", heads, " heads by cosines ", cos, " and sines ", sin,
                  ", expected [tokens, pairs] or [batch, tokens, pairs] of at most half the head's width");
  if (!isa<FloatType>(input.getElementType()))
    return reject("has input ", input, ", expected floats (dg.cast makes them)");
  return input;
}

SmallVector<Value> RotaryOp::decompose(OpBuilder &builder) {
  auto input = tensorOf(getInput());
  int64_t heads = getHeads();
  Value cut = buildReshape(builder, getLoc(), getInput(),
                           {input.getDimSize(0), input.getDimSize(1), heads, input.getDimSize(2) / heads});
  Value turned = create<RotatePairsOp>(builder, getLoc(), cut, getCos(), getSin(), getInterleaved());
  return {buildReshape(builder, getLoc(), turned, input.getShape())};
}

void RotaryOp::compute(HostOperands operands, HostResults results) {
  int64_t heads = getHeads();
  turnPairs(operands, results, heads, operands[0].shape[2] / heads, getInterleaved());
}

//===- RotatePairsOp ---------------------------------------------------------------------------------------------===//

FailureOr<Type> RotatePairsOp::inferType(Adaptor op, const Rejection &reject) {
  auto input = tensorOf(op.getInput()), cos = tensorOf(op.getCos()), sin = tensorOf(op.getSin());
  if (input.getRank() != 4 || input.isDynamicDim(3) || !isa<FloatType>(input.getElementType()) ||
      !anglesFit(input, cos, sin, input.getDimSize(3)))
    return reject("turns ", input, " by cosines ", cos, " and sines ", sin,
                  ", expected floats [batch, tokens, heads, head width], and [tokens, pairs] or [batch, tokens, pairs] "
                  "of at most half the head's width");
  return input;
}

/// The same by ops on parts of heads.
static SmallVector<Value> buildParts(OpBuilder &builder, RotatePairsOp op) {
  Location loc = op.getLoc();
  auto input = tensorOf(op.getInput()), angles = tensorOf(op.getCos());
  int64_t batch = input.getDimSize(0), tokens = input.getDimSize(1), heads = input.getDimSize(2),
          width = input.getDimSize(3), pairs = angles.getShape().back();
  Value x = op.getInput();
  auto slice = [&](Value value, ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes) -> Value {
    return create<SliceOp>(builder, loc, value, starts, sizes, DenseI64ArrayAttr());
  };
  Value turned = 2 * pairs == width ? x : slice(x, {0, 0, 0, 0}, {batch, tokens, heads, 2 * pairs});
  // Both members of each pair, as [batch, tokens, heads, pairs, 1] or [batch, tokens, heads, pairs].
  SmallVector<int64_t> member{batch, tokens, heads, pairs}, angle(angles.getShape().drop_back());
  angle.append({1, pairs});
  SmallVector<int64_t> second{0, 0, 0, pairs};
  if (op.getInterleaved()) {
    turned = buildReshape(builder, loc, turned, {batch, tokens, heads, pairs, 2});
    member.push_back(1);
    angle.push_back(1);
    second = {0, 0, 0, 0, 1};
  }
  Value a = slice(turned, SmallVector<int64_t>(member.size(), 0), member), b = slice(turned, second, member);
  Value cos = buildReshape(builder, loc, op.getCos(), angle), sin = buildReshape(builder, loc, op.getSin(), angle);
  auto times = [&](Value lhs, Value rhs) -> Value { return create<MulOp>(builder, loc, lhs, rhs); };
  Value first = create<SubOp>(builder, loc, times(a, cos), times(b, sin));
  Value other = create<AddOp>(builder, loc, times(b, cos), times(a, sin));
  Value result = create<ConcatOp>(builder, loc, ValueRange{first, other}, member.size() - 1);
  result = buildReshape(builder, loc, result, {batch, tokens, heads, 2 * pairs});
  if (2 * pairs < width) {
    Value rest = slice(x, {0, 0, 0, 2 * pairs}, {batch, tokens, heads, width - 2 * pairs});
    result = create<ConcatOp>(builder, loc, ValueRange{result, rest}, 3);
  }
  return {result};
}

/// The gradient at the input turns back; those at the angles, which hardly anybody needs, are sums over heads.
Gradients RotatePairsOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Gradients all = differentiateParts(builder, *this, grads, [&](OpBuilder &inner) { return buildParts(inner, *this); });
  if (failed(all))
    return failure();
  (*all)[0] = create<RotatePairsOp>(builder, getLoc(), grads[0], getCos(), buildScale(builder, getLoc(), getSin(), -1),
                                    getInterleaved());
  return all;
}

/// Batch, tokens and heads move; a head stays whole.
ShardingRule RotatePairsOp::getShardingRule() {
  ShardingRule rule = emptyShardingRule(*this);
  auto input = tensorOf(getInput());
  int64_t rank = tensorOf(getCos()).getRank();
  for (int64_t dim = 0; dim < 3; ++dim) {
    int32_t factor = rule.addFactor(input.getDimSize(dim));
    rule.operands[0][dim].push_back(factor);
    rule.results[0][dim].push_back(factor);
    int64_t angleDim = dim - (3 - rank);
    for (unsigned angles : {1u, 2u})
      if (dim < 2 && angleDim >= 0)
        rule.operands[angles][angleDim].push_back(factor);
  }
  return rule;
}

void RotatePairsOp::compute(HostOperands operands, HostResults results) {
  turnPairs(operands, results, operands[0].shape[2], operands[0].shape[3], getInterleaved());
}

} // namespace dg::ir
