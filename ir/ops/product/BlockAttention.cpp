// SPDX-License-Identifier: Apache-2.0
// Attention in blocks (FlashAttention, arXiv 2205.14135) and its gradient as ops of their own: their kernels keep a
// block of scores at a time. Definitions here; what they are cut along is batch and heads.
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/elementwise/MathOps.h"
#include "ir/ops/product/AttentionOps.h"
#include "ir/ops/product/ContractionOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/TypeInference.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace dg::ir {

/// Query, key and value, what their heads are, and who sees whom; rejects what does not fit.
template <typename Adaptor> static LogicalResult checkHeads(const Rejection &reject, Adaptor op) {
  auto query = tensorOf(op.getQuery()), key = tensorOf(op.getKey()), value = tensorOf(op.getValue());
  bool fits = query.getRank() == 3 && mayBeEqual(key.getShape(), value.getShape()) && key.getRank() == 3 &&
              mayBeEqual(query.getDimSize(0), key.getDimSize(0)) && query.getElementType() == key.getElementType() &&
              query.getElementType() == value.getElementType();
  if (!fits)
    return reject("has query ", query, ", key ", key, " and value ", value,
                  ", expected [batch, tokens, width] with equal batch, key and value alike");
  int64_t width = op.getHeadWidth();
  auto divides = [&](int64_t size) { return width >= 1 && (ShapedType::isDynamic(size) || size % width == 0); };
  if (!divides(query.getDimSize(2)) || !divides(key.getDimSize(2)))
    return reject("cuts widths of ", query.getDimSize(2), " and ", key.getDimSize(2), " into heads of ", width,
                  ", expected a number that divides both");
  int64_t heads = query.getDimSize(2) / width, kvHeads = key.getDimSize(2) / width;
  bool isKnown = !query.isDynamicDim(2) && !key.isDynamicDim(2);
  if (isKnown && (heads == 0) != (kvHeads == 0))
    return reject("has ", heads, " heads of the query and ", kvHeads, " of the key, expected some of both, or none");
  if (isKnown && kvHeads > 0 && heads % kvHeads != 0)
    return reject("has ", heads, " heads of the query and ", kvHeads,
                  " of the key, expected a group of heads for each head of the key");
  if (op.getCausal() && !op.getOffset() && !mayBeEqual(query.getDimSize(1), key.getDimSize(1)))
    return reject("is causal with ", query.getDimSize(1), " tokens of query and ", key.getDimSize(1),
                  " of key, expected equally many, or an offset");
  if ((!op.getCausal() && (op.getOffset() || op.getWindow())) || (op.getWindow() && *op.getWindow() < 1))
    return reject("has an offset or a window of ", op.getWindow().value_or(0),
                  ", expected them with `causal`, and a window of one token at least");
  if (Value mask = op.getMask()) {
    auto type = tensorOf(mask);
    SmallVector<int64_t> scores{query.getDimSize(0), isKnown ? heads : ShapedType::kDynamic, query.getDimSize(1),
                                key.getDimSize(1)};
    auto joined = type.getRank() <= 4 ? broadcastShapes(scores, type.getShape()) : std::nullopt;
    if (!joined || !mayBeEqual(*joined, scores) ||
        (type.getElementType() != query.getElementType() && !type.getElementType().isInteger(1)))
      return reject("has mask ", type,
                    ", expected booleans or the query's element type, and a shape that broadcasts to ",
                    RankedTensorType::get(scores, query.getElementType()));
  }
  return success();
}

/// One number for each token and head, in the type of sums.
static RankedTensorType rowsOf(RankedTensorType query, int64_t headWidth) {
  SmallVector<int64_t> shape(query.getShape());
  shape[2] = query.isDynamicDim(2) ? ShapedType::kDynamic : query.getDimSize(2) / headWidth;
  return RankedTensorType::get(shape, arithmeticType(query.getElementType()));
}

/// Batch and heads of the key move together, each with its group of heads of the query. `perHead` operands and results
/// have one number for each head of the query, `ofKey` are as wide as the key.
template <typename Op>
static ShardingRule headRule(Op op, ArrayRef<unsigned> perHeadOperands, ArrayRef<unsigned> ofKeyOperands,
                             ArrayRef<unsigned> perHeadResults, ArrayRef<unsigned> ofKeyResults) {
  ShardingRule rule = emptyShardingRule(op);
  auto query = tensorOf(op.getQuery()), key = tensorOf(op.getKey());
  int64_t width = op.getHeadWidth(), kvHeads = key.getDimSize(2) / width,
          group = kvHeads == 0 ? 1 : query.getDimSize(2) / width / kvHeads;
  int32_t batch = rule.addFactor(query.getDimSize(0)), heads = rule.addFactor(kvHeads), inGroup = rule.addFactor(group),
          inHead = rule.addFactor(width);
  auto fill = [&](auto &dims, bool isPerHead, bool isOfKey) {
    dims[0] = {batch};
    dims[2] = {heads};
    if (!isOfKey)
      dims[2].push_back(inGroup);
    if (!isPerHead)
      dims[2].push_back(inHead);
  };
  const size_t numRows = op->getNumOperands() - (op.getMask() ? 1 : 0);
  for (unsigned i = 0; i < numRows; ++i)
    fill(rule.operands[i], llvm::is_contained(perHeadOperands, i), llvm::is_contained(ofKeyOperands, i));
  for (auto [i, dims] : llvm::enumerate(rule.results))
    fill(dims, llvm::is_contained(perHeadResults, i), llvm::is_contained(ofKeyResults, i));
  if (!op.getMask())
    return rule;
  // What the mask repeats stays whole.
  auto type = tensorOf(op.getMask());
  int64_t headDim = type.getRank() - 3, batchDim = type.getRank() - 4;
  if (headDim >= 0 && type.getDimSize(headDim) > 1)
    rule.operands.back()[headDim] = {heads, inGroup};
  if (batchDim >= 0 && type.getDimSize(batchDim) > 1)
    rule.operands.back()[batchDim] = {batch};
  return rule;
}

namespace {
/// The tokens of the key that one of the query sees: [first, end).
struct Sight {
  int64_t seen, offset, window;
  bool isCausal;

  template <typename Op>
  explicit Sight(Op op)
      : seen(tensorOf(op.getKey()).getDimSize(1)), offset(op.getOffset().value_or(0)),
        window(op.getWindow().value_or(0)), isCausal(op.getCausal()) {}
  int64_t first(int64_t token) const {
    return window == 0 ? 0 : std::clamp<int64_t>(token + offset + 1 - window, 0, seen);
  }
  int64_t end(int64_t token) const { return isCausal ? std::clamp<int64_t>(token + offset + 1, 0, seen) : seen; }
};
} // namespace

/// With `products` of tokens × tokens × width, of tokens that see each other.
template <typename Op> static OpCost attentionCost(Op op, double products) {
  auto query = tensorOf(op.getQuery());
  Sight sight(op);
  double pairs = 0;
  for (int64_t token = 0; token < query.getDimSize(1); ++token)
    pairs += double(std::max<int64_t>(0, sight.end(token) - sight.first(token)));
  return {2 * products * double(query.getDimSize(0)) * double(query.getDimSize(2)) * pairs, operandAndResultBytes(op)};
}

/// The tokens that a row sees, in a head of a batch, and where they lie.
template <typename Op> struct HeadWalk {
  int64_t batch, tokens, seen, heads, width, group;
  Sight sight;
  double scale;
  const HostTensor *mask = nullptr;
  bool isBoolean = false;
  SmallVector<int64_t> maskStrides;

  /// `maskOperand` is the number of the mask, where there is one.
  HeadWalk(Op op, HostOperands operands, unsigned queryOperand, unsigned maskOperand)
      : batch(operands[queryOperand].shape[0]), tokens(operands[queryOperand].shape[1]),
        seen(operands[queryOperand + 1].shape[1]), heads(operands[queryOperand].shape[2] / op.getHeadWidth()),
        width(op.getHeadWidth()),
        group(std::max<int64_t>(1, heads / std::max<int64_t>(1, operands[queryOperand + 1].shape[2] / width))),
        sight(op), scale(op.getScale().convertToDouble()) {
    if (!op.getMask())
      return;
    mask = &operands[maskOperand];
    isBoolean = tensorOf(op.getMask()).getElementType().isInteger(1);
    maskStrides = broadcastStrides(mask->shape, {batch, heads, tokens, seen});
  }

  /// What the mask adds to a score.
  double masked(int64_t b, int64_t head, int64_t token, int64_t s) const {
    if (!mask)
      return 0;
    double value = mask->data[b * maskStrides[0] + head * maskStrides[1] + token * maskStrides[2] + s * maskStrides[3]];
    return !isBoolean ? value : value != 0 ? 0 : -std::numeric_limits<double>::infinity();
  }
  /// Of a row's number for one head; times `width` where its elements start.
  int64_t queryRow(int64_t b, int64_t token, int64_t head) const { return (b * tokens + token) * heads + head; }
  int64_t keyRow(int64_t b, int64_t token, int64_t head) const {
    return (b * seen + token) * (heads / group) + head / group;
  }

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

/// The gradient of a mask of numbers, which few models train: with all scores in memory.
static Value buildMaskGradient(OpBuilder &builder, BlockAttentionOp op, Value grad, Value rowSums) {
  Location loc = op.getLoc();
  auto query = tensorOf(op.getQuery()), key = tensorOf(op.getKey()), mask = tensorOf(op.getMask());
  Type sumType = tensorOf(rowSums).getElementType();
  int64_t width = op.getHeadWidth(), batch = query.getDimSize(0), tokens = query.getDimSize(1),
          seen = key.getDimSize(1), heads = query.getDimSize(2) / width, kvHeads = key.getDimSize(2) / width,
          group = kvHeads == 0 ? 1 : heads / kvHeads;
  const int64_t headsFirst[] = {0, 2, 1, 3};
  auto cast = [&](Value value, Type element) -> Value {
    return tensorOf(value).getElementType() == element
               ? value
               : create<CastOp>(builder, loc, value, TypeAttr::get(element)).getResult();
  };
  auto perHead = [&](Value value, int64_t count, int64_t size) -> Value {
    Value cut = buildReshape(builder, loc, cast(value, sumType), {batch, tensorOf(value).getDimSize(1), count, size});
    return create<TransposeOp>(builder, loc, cut, headsFirst);
  };
  auto products = [&](Value rows, Value columns) -> Value {
    Value left = buildReshape(builder, loc, perHead(rows, heads, width), {batch, kvHeads, group * tokens, width});
    Value all = create<MatmulOp>(builder, loc, left, perHead(columns, kvHeads, width), /*transpose_lhs=*/false,
                                 /*transpose_rhs=*/true);
    return buildReshape(builder, loc, all, {batch, heads, tokens, seen});
  };
  Value scores = buildScale(builder, loc, products(op.getQuery(), op.getKey()), op.getScale().convertToDouble());
  scores = create<AddOp>(builder, loc, scores, cast(op.getMask(), sumType));
  scores = create<SubOp>(builder, loc, scores, perHead(op.getLogsumexp(), heads, 1));
  Value weights = create<ExpOp>(builder, loc, scores);
  Value slope = create<SubOp>(builder, loc, products(grad, op.getValue()), perHead(rowSums, heads, 1));
  Value all = create<MulOp>(builder, loc, weights, slope);
  int64_t offset = op.getOffset().value_or(0);
  if (op.getCausal())
    all = create<TriluOp>(builder, loc, all, /*upper=*/false, offset);
  if (op.getWindow())
    all = create<TriluOp>(builder, loc, all, /*upper=*/true, offset + 1 - int64_t(*op.getWindow()));
  return cast(sumToShape(builder, loc, all, RankedTensorType::get(mask.getShape(), sumType)), mask.getElementType());
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
                                         getMask(), getHeadWidth(), getScale(), getCausal(), getOffsetAttr(),
                                         getWindowAttr());
  SmallVector<Value> all(op->getResults());
  if (Value mask = getMask())
    all.push_back(isa<FloatType>(tensorOf(mask).getElementType()) ? buildMaskGradient(builder, *this, grad, sums)
                                                                  : Value());
  return all;
}

ShardingRule BlockAttentionOp::getShardingRule() { return headRule(*this, {}, {1, 2}, {1}, {}); }
OpCost BlockAttentionOp::getCost() { return attentionCost(*this, 2); }

void BlockAttentionOp::compute(HostOperands operands, HostResults results) {
  HeadWalk<BlockAttentionOp> walk(*this, operands, 0, 3);
  std::vector<double> scores(walk.seen);
  walk.forEachRow([&](int64_t b, int64_t head, int64_t token) {
    int64_t row = walk.queryRow(b, token, head), width = walk.width;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    const int64_t first = walk.sight.first(token), end = walk.sight.end(token);
    for (int64_t s = first; s < end; ++s) {
      scores[s] =
          walk.scale * dot(&operands[0].data[row * width], &operands[1].data[walk.keyRow(b, s, head) * width], width) +
          walk.masked(b, head, token, s);
      largest = std::max(largest, scores[s]);
    }
    if (!(largest > leastScore)) {
      results[1].data[row] = std::numeric_limits<double>::infinity();
      return;
    }
    for (int64_t s = first; s < end; ++s)
      sum += std::exp(scores[s] - largest);
    double logsumexp = results[1].data[row] = largest + std::log(sum);
    for (int64_t s = first; s < end; ++s)
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

ShardingRule BlockAttentionGradOp::getShardingRule() { return headRule(*this, {4, 5}, {2, 3}, {}, {1, 2}); }
OpCost BlockAttentionGradOp::getCost() { return attentionCost(*this, 5); }

/// With p the weights, e^(score - logsumexp): dv = pᵀ dy, ds = scale · p · (dy vᵀ - row sums), dq = ds k, dk = dsᵀ q.
void BlockAttentionGradOp::compute(HostOperands operands, HostResults results) {
  HeadWalk<BlockAttentionGradOp> walk(*this, operands, 1, 6);
  walk.forEachRow([&](int64_t b, int64_t head, int64_t token) {
    int64_t row = walk.queryRow(b, token, head), width = walk.width;
    const double *grad = &operands[0].data[row * width], *query = &operands[1].data[row * width];
    for (int64_t s = walk.sight.first(token); s < walk.sight.end(token); ++s) {
      int64_t at = walk.keyRow(b, s, head) * width;
      const double *key = &operands[2].data[at], *value = &operands[3].data[at];
      double score = walk.scale * dot(query, key, width) + walk.masked(b, head, token, s);
      double weight = std::exp(score - operands[4].data[row]);
      double scoreGrad = walk.scale * weight * (dot(grad, value, width) - operands[5].data[row]);
      for (int64_t i = 0; i < width; ++i) {
        results[0].data[row * width + i] += scoreGrad * key[i];
        results[1].data[at + i] += scoreGrad * query[i];
        results[2].data[at + i] += weight * grad[i];
      }
    }
  });
}

} // namespace dg::ir
