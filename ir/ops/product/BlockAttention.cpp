// SPDX-License-Identifier: Apache-2.0
// Attention in blocks (FlashAttention, arXiv 2205.14135) and its gradient as ops of their own: their kernels keep a
// block of scores at a time. Definitions here; what they are cut along is batch and heads.
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/product/AttentionOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/TypeInference.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace dg::ir {

/// Query, key and value, and what their heads are; rejects what does not fit.
template <typename Adaptor> static LogicalResult checkHeads(const Rejection &reject, Adaptor op) {
  auto query = tensorOf(op.getQuery()), key = tensorOf(op.getKey()), value = tensorOf(op.getValue());
  bool fits = query.getRank() == 3 && mayBeEqual(key.getShape(), value.getShape()) && key.getRank() == 3 &&
              mayBeEqual(query.getDimSize(0), key.getDimSize(0)) &&
              mayBeEqual(query.getDimSize(2), key.getDimSize(2)) && query.getElementType() == key.getElementType() &&
              query.getElementType() == value.getElementType();
  if (!fits)
    return reject("has query ", query, ", key ", key, " and value ", value,
                  ", expected [batch, tokens, width] with equal batch and width, key and value alike");
  int64_t width = op.getHeadWidth();
  if (width < 1 || (!query.isDynamicDim(2) && query.getDimSize(2) % width != 0))
    return reject("cuts a width of ", query.getDimSize(2), " into heads of ", width,
                  ", expected a number that divides the width");
  if (op.getCausal() && !mayBeEqual(query.getDimSize(1), key.getDimSize(1)))
    return reject("is causal with ", query.getDimSize(1), " tokens of query and ", key.getDimSize(1),
                  " of key, expected equally many");
  return success();
}

/// One number for each token and head, in the type of sums.
static RankedTensorType rowsOf(RankedTensorType query, int64_t headWidth) {
  SmallVector<int64_t> shape(query.getShape());
  shape[2] = query.isDynamicDim(2) ? ShapedType::kDynamic : query.getDimSize(2) / headWidth;
  return RankedTensorType::get(shape, arithmeticType(query.getElementType()));
}

/// Batch and heads move together; `perHead` operands and results have one number for each head.
template <typename Op>
static ShardingRule headRule(Op op, ArrayRef<unsigned> perHeadOperands, ArrayRef<unsigned> perHeadResults) {
  ShardingRule rule = emptyShardingRule(op);
  auto query = tensorOf(op.getQuery());
  int64_t width = op.getHeadWidth();
  int32_t batch = rule.addFactor(query.getDimSize(0)), heads = rule.addFactor(query.getDimSize(2) / width),
          inHead = rule.addFactor(width);
  auto fill = [&](auto &dims, bool isPerHead) {
    dims[0] = {batch};
    dims[2] = {heads};
    if (!isPerHead)
      dims[2].push_back(inHead);
  };
  for (auto [i, dims] : llvm::enumerate(rule.operands))
    fill(dims, llvm::is_contained(perHeadOperands, i));
  for (auto [i, dims] : llvm::enumerate(rule.results))
    fill(dims, llvm::is_contained(perHeadResults, i));
  return rule;
}

/// With `products` of tokens × tokens × width; a causal op skips about half.
template <typename Op> static OpCost attentionCost(Op op, double products) {
  auto query = tensorOf(op.getQuery());
  double pairs = double(query.getDimSize(1)) * double(tensorOf(op.getKey()).getDimSize(1)) * (op.getCausal() ? 0.5 : 1);
  return {2 * products * double(query.getDimSize(0)) * double(query.getDimSize(2)) * pairs, operandAndResultBytes(op)};
}

/// The tokens that a row sees, in a head of a batch, and where they lie.
template <typename Op> struct HeadWalk {
  int64_t batch, tokens, seen, heads, width;
  bool isCausal;

  HeadWalk(Op op, ArrayRef<int64_t> query, ArrayRef<int64_t> key)
      : batch(query[0]), tokens(query[1]), seen(key[1]), heads(query[2] / op.getHeadWidth()), width(op.getHeadWidth()),
        isCausal(op.getCausal()) {}

  int64_t numSeen(int64_t token) const { return isCausal ? token + 1 : seen; }
  /// Of a row's number for one head; times `width` where its elements start.
  int64_t queryRow(int64_t b, int64_t token, int64_t head) const { return (b * tokens + token) * heads + head; }
  int64_t keyRow(int64_t b, int64_t token, int64_t head) const { return (b * seen + token) * heads + head; }

  template <typename Visit> void forEachRow(Visit visit) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t token = 0; token < tokens; ++token)
          visit(b, head, token);
  }
};

static double dot(const double *a, const double *b, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i)
    sum += a[i] * b[i];
  return sum;
}

//===- BlockAttentionOp ------------------------------------------------------------------------------------------===//

FailureOr<SmallVector<Type>> BlockAttentionOp::inferTypes(Adaptor op, const Rejection &reject) {
  if (failed(checkHeads(reject, op)))
    return failure();
  auto query = tensorOf(op.getQuery());
  return SmallVector<Type>{query, rowsOf(query, op.getHeadWidth())};
}

Gradients BlockAttentionOp::buildGradients(OpBuilder &builder, ValueRange grads) {
  Location loc = getLoc();
  Value grad = grads[0] ? grads[0] : buildZeros(builder, loc, getResult());
  Type sumType = arithmeticType(tensorOf(grad).getElementType());
  auto widened = [&](Value value) -> Value {
    return tensorOf(value).getElementType() == sumType
               ? value
               : create<CastOp>(builder, loc, value, TypeAttr::get(sumType)).getResult();
  };
  Value products = create<MulOp>(builder, loc, widened(grad), widened(getResult()));
  SmallVector<int64_t> perHead(tensorOf(getLogsumexp()).getShape());
  perHead.push_back(getHeadWidth());
  Value sums = create<ReduceSumOp>(builder, loc, buildReshape(builder, loc, products, perHead), ArrayRef<int64_t>{3},
                                   /*keep=*/false);
  if (grads[1])
    sums = create<SubOp>(builder, loc, sums, grads[1]);
  auto op = create<BlockAttentionGradOp>(builder, loc, grad, getQuery(), getKey(), getValue(), getLogsumexp(), sums,
                                         getHeadWidth(), getScale(), getCausal());
  return SmallVector<Value>(op->getResults());
}

ShardingRule BlockAttentionOp::getShardingRule() { return headRule(*this, {}, {1}); }
OpCost BlockAttentionOp::getCost() { return attentionCost(*this, 2); }

void BlockAttentionOp::compute(HostOperands operands, HostResults results) {
  HeadWalk<BlockAttentionOp> walk(*this, operands[0].shape, operands[1].shape);
  double scale = getScale().convertToDouble();
  std::vector<double> scores(walk.seen);
  walk.forEachRow([&](int64_t b, int64_t head, int64_t token) {
    int64_t row = walk.queryRow(b, token, head), width = walk.width;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t s = 0; s < walk.numSeen(token); ++s) {
      scores[s] =
          scale * dot(&operands[0].data[row * width], &operands[1].data[walk.keyRow(b, s, head) * width], width);
      largest = std::max(largest, scores[s]);
    }
    for (int64_t s = 0; s < walk.numSeen(token); ++s)
      sum += std::exp(scores[s] - largest);
    double logsumexp = results[1].data[row] = largest + std::log(sum);
    for (int64_t s = 0; s < walk.numSeen(token); ++s)
      for (int64_t i = 0; i < width; ++i)
        results[0].data[row * width + i] +=
            std::exp(scores[s] - logsumexp) * operands[2].data[walk.keyRow(b, s, head) * width + i];
  });
}

//===- BlockAttentionGradOp --------------------------------------------------------------------------------------===//

FailureOr<SmallVector<Type>> BlockAttentionGradOp::inferTypes(Adaptor op, const Rejection &reject) {
  if (failed(checkHeads(reject, op)))
    return failure();
  auto query = tensorOf(op.getQuery()), key = tensorOf(op.getKey()), grad = tensorOf(op.getGrad());
  auto rows = rowsOf(query, op.getHeadWidth());
  auto fits = [](RankedTensorType found, RankedTensorType expected) {
    return mayBeEqual(found.getShape(), expected.getShape()) && found.getElementType() == expected.getElementType();
  };
  if (!fits(grad, query) || !fits(tensorOf(op.getLogsumexp()), rows) || !fits(tensorOf(op.getRowSums()), rows))
    return reject("has gradient ", grad, ", logsumexp ", op.getLogsumexp().getType(), " and row sums ",
                  op.getRowSums().getType(), ", expected ", query, " and twice ", rows);
  return SmallVector<Type>{query, key, key};
}

ShardingRule BlockAttentionGradOp::getShardingRule() { return headRule(*this, {4, 5}, {}); }
OpCost BlockAttentionGradOp::getCost() { return attentionCost(*this, 5); }

/// With p the weights, e^(score - logsumexp): dv = pᵀ dy, ds = scale · p · (dy vᵀ - row sums), dq = ds k, dk = dsᵀ q.
void BlockAttentionGradOp::compute(HostOperands operands, HostResults results) {
  HeadWalk<BlockAttentionGradOp> walk(*this, operands[1].shape, operands[2].shape);
  double scale = getScale().convertToDouble();
  walk.forEachRow([&](int64_t b, int64_t head, int64_t token) {
    int64_t row = walk.queryRow(b, token, head), width = walk.width;
    const double *grad = &operands[0].data[row * width], *query = &operands[1].data[row * width];
    for (int64_t s = 0; s < walk.numSeen(token); ++s) {
      int64_t at = walk.keyRow(b, s, head) * width;
      const double *key = &operands[2].data[at], *value = &operands[3].data[at];
      double weight = std::exp(scale * dot(query, key, width) - operands[4].data[row]);
      double scoreGrad = scale * weight * (dot(grad, value, width) - operands[5].data[row]);
      for (int64_t i = 0; i < width; ++i) {
        results[0].data[row * width + i] += scoreGrad * key[i];
        results[1].data[at + i] += scoreGrad * query[i];
        results[2].data[at + i] += weight * grad[i];
      }
    }
  });
}

} // namespace dg::ir
