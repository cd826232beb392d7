// SPDX-License-Identifier: Apache-2.0
// Attention as a composite that can be cut along the heads: a head is the first factor of a width, and no part mixes
// heads. Its parts in blocks are in BlockAttention.cpp, the rotation of queries and keys in Rotation.cpp.
#include "ir/ops/product/AttentionOps.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/dialect/HostTensorAccess.h"
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/elementwise/ElementwiseOps.h"
#include "ir/ops/elementwise/LogicOps.h"
#include "ir/ops/product/ContractionOps.h"
#include "ir/ops/reduction/NormalizationOps.h"
#include "ir/rules/GradientBuilding.h"
#include "ir/rules/TypeInference.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace dg::ir {

/// What is added to the score of a token that may not be seen: its weight is 0, and a sum of two is still a number.
static double forbiddenScore(Type element) { return element.isF16() ? -65504 : -1e38; }

//===- AttentionOp -----------------------------------------------------------------------------------------------===//

/// A width that is known is a multiple of the heads.
static bool divides(int64_t heads, int64_t width) {
  return heads >= 1 && (ShapedType::isDynamic(width) || width % heads == 0);
}

FailureOr<Type> AttentionOp::inferType(Adaptor op, const Rejection &reject) {
  auto query = tensorOf(op.getQuery()), key = tensorOf(op.getKey()), value = tensorOf(op.getValue());
  int64_t heads = op.getHeads(), kvHeads = op.getKvHeads().value_or(heads);
  bool fits = query.getRank() == 3 && key.getRank() == 3 && value.getRank() == 3 &&
              mayBeEqual(key.getShape().drop_back(), value.getShape().drop_back()) &&
              mayBeEqual(query.getDimSize(0), key.getDimSize(0)) && query.getElementType() == key.getElementType() &&
              query.getElementType() == value.getElementType() &&
              (kvHeads != heads || mayBeEqual(query.getDimSize(2), key.getDimSize(2)));
  if (!fits)
    return reject("has query ", query, ", key ", key, " and value ", value,
                  ", expected [batch, tokens, width] with equal batch and width, key and value alike");
  if (!isa<FloatType>(query.getElementType()))
    return reject("has query ", query, ", expected floats (dg.cast makes them)");
  bool isSquare = mayBeEqual(query.getDimSize(1), key.getDimSize(1));
  if (op.getCausal() && !op.getOffset() && !isSquare)
    return reject("is causal with ", query.getDimSize(1), " tokens of query and ", key.getDimSize(1),
                  " of key, expected equally many, or an offset");
  if (!divides(heads, query.getDimSize(2)))
    return reject("cuts a width of ", query.getDimSize(2), " into ", heads,
                  " heads, expected a number that divides the width");
  bool isGrouped =
      divides(kvHeads, heads) && divides(kvHeads, key.getDimSize(2)) && divides(kvHeads, value.getDimSize(2)) &&
      (query.isDynamicDim(2) || key.isDynamicDim(2) || query.getDimSize(2) / heads == key.getDimSize(2) / kvHeads);
  if (!isGrouped)
    return reject("has ", heads, " heads of query ", query, " and ", kvHeads, " of key ", key, " and value ", value,
                  ", expected heads of one width, in groups of equal size for each head of the key");
  if (op.getMask()) {
    auto mask = tensorOf(op.getMask());
    SmallVector<int64_t> scores{query.getDimSize(0), heads, query.getDimSize(1), key.getDimSize(1)};
    auto joined = mask.getRank() <= 4 ? broadcastShapes(scores, mask.getShape()) : std::nullopt;
    if (!joined || !mayBeEqual(*joined, scores) ||
        (mask.getElementType() != query.getElementType() && !mask.getElementType().isInteger(1)))
      return reject("has mask ", mask,
                    ", expected booleans or the query's element type, and a shape that broadcasts to ",
                    RankedTensorType::get(scores, query.getElementType()));
  }
  if (!op.getCausal() && (op.getOffset() || op.getWindow()))
    return reject("has an offset or a window without `causal`, expected both or neither");
  if (op.getWindow() && *op.getWindow() < 1)
    return reject("has a window of ", *op.getWindow(), ", expected at least one token");
  SmallVector<int64_t> shape(query.getShape());
  shape[2] = value.isDynamicDim(2) ? ShapedType::kDynamic : value.getDimSize(2) / kvHeads * heads;
  return RankedTensorType::get(shape, query.getElementType());
}

/// Whether no token after its own is seen and every one before it.
static bool isPlainCausal(AttentionOp op) {
  return op.getCausal() && tensorOf(op.getQuery()).getDimSize(1) == tensorOf(op.getKey()).getDimSize(1) &&
         op.getOffset().value_or(0) == 0 && !op.getWindow();
}

static double scaleOf(AttentionOp op) {
  int64_t headWidth = tensorOf(op.getQuery()).getDimSize(2) / int64_t(op.getHeads());
  return op.getScale() ? op.getScale()->convertToDouble() : 1 / std::sqrt(double(headWidth));
}

/// Those of key and value: the fewest.
int64_t AttentionOp::getNumHeads() { return int64_t(getKvHeads().value_or(getHeads())); }

/// In blocks of tokens, unless heads have several widths. Sums of 16 bits wait on the stack of a kernel, of all heads
/// of a group: keys and values of long sequences are repeated for each head instead.
SmallVector<Value> AttentionOp::decompose(OpBuilder &builder) {
  int64_t heads = getHeads(), kvHeads = getKvHeads().value_or(heads), group = heads / kvHeads,
          headWidth = tensorOf(getQuery()).getDimSize(2) / heads,
          valueWidth = tensorOf(getValue()).getDimSize(2) / kvHeads;
  if (headWidth != valueWidth || headWidth == 0)
    return decomposeWithScores(builder);
  Value key = getKey(), value = getValue();
  auto repeat = [&](Value rows) -> Value {
    ArrayRef<int64_t> shape = tensorOf(rows).getShape();
    Value cut = buildReshape(builder, getLoc(), rows, {shape[0], shape[1], kvHeads, 1, headWidth});
    Value all =
        create<ExpandOp>(builder, getLoc(), cut, ArrayRef<int64_t>{shape[0], shape[1], kvHeads, group, headWidth});
    return buildReshape(builder, getLoc(), all, {shape[0], shape[1], heads * headWidth});
  };
  Type element = tensorOf(getQuery()).getElementType();
  constexpr int64_t mostKept = 64 << 10; // elements
  if (group > 1 && isHalf(element) && tensorOf(getQuery()).getDimSize(1) * headWidth * group > mostKept)
    key = repeat(key), value = repeat(value);
  bool isPlain = isPlainCausal(*this);
  auto blocks = create<BlockAttentionOp>(
      builder, getLoc(), getQuery(), key, value, getMask(), headWidth, APFloat(scaleOf(*this)), getCausal(),
      isPlain ? IntegerAttr() : getOffsetAttr(), isPlain ? IntegerAttr() : getWindowAttr());
  return {blocks.getResult()};
}

/// Heads of one key share their queries' rows: [batch, kv_heads, group · tokens, head width].
SmallVector<Value> AttentionOp::decomposeWithScores(OpBuilder &builder) {
  Location loc = getLoc();
  int64_t heads = getHeads(), kvHeads = getKvHeads().value_or(heads), group = heads / kvHeads;
  int64_t batch = tensorOf(getQuery()).getDimSize(0), tokens = tensorOf(getQuery()).getDimSize(1),
          seen = tensorOf(getKey()).getDimSize(1), headWidth = tensorOf(getQuery()).getDimSize(2) / heads,
          valueWidth = tensorOf(getValue()).getDimSize(2) / kvHeads;
  double scale = scaleOf(*this);
  // The softmax masks what lies above the diagonal by itself.
  bool isCausalSoftmax = isPlainCausal(*this);
  const int64_t headsFirst[] = {0, 2, 1, 3}; // its own inverse
  auto splitHeads = [&](Value value, int64_t count, int64_t width) -> Value {
    auto type = tensorOf(value);
    Value split = buildReshape(builder, loc, value, {type.getDimSize(0), type.getDimSize(1), count, width});
    return create<TransposeOp>(builder, loc, split, headsFirst);
  };
  Value query = splitHeads(getQuery(), heads, headWidth), key = splitHeads(getKey(), kvHeads, headWidth),
        value = splitHeads(getValue(), kvHeads, valueWidth);
  query = buildReshape(builder, loc, query, {batch, kvHeads, group * tokens, headWidth});
  Value scores = create<MatmulOp>(builder, loc, query, key, /*transpose_lhs=*/false, /*transpose_rhs=*/true);
  scores = buildReshape(builder, loc, scores, {batch, heads, tokens, seen});

  SmallVector<Value> masks;
  if (Value mask = getMask()) {
    if (tensorOf(mask).getElementType().isInteger(1)) {
      auto number = RankedTensorType::get({}, tensorOf(scores).getElementType());
      mask = create<SelectOp>(builder, loc, mask, buildFilled(builder, loc, number, 0),
                              buildFilled(builder, loc, number, forbiddenScore(number.getElementType())));
    }
    masks.push_back(mask);
  }
  if (getCausal() && !isCausalSoftmax) {
    auto type = RankedTensorType::get({tokens, seen}, tensorOf(scores).getElementType());
    Value forbidden = buildFilled(builder, loc, type, forbiddenScore(type.getElementType()));
    int64_t offset = getOffset().value_or(0);
    masks.push_back(create<TriluOp>(builder, loc, forbidden, /*upper=*/true, offset + 1));
    if (getWindow())
      masks.push_back(create<TriluOp>(builder, loc, forbidden, /*upper=*/false, offset - int64_t(*getWindow())));
  }
  if (!masks.empty()) {
    scores = buildScale(builder, loc, scores, scale);
    scale = 1;
  }
  for (Value mask : masks)
    scores = create<AddOp>(builder, loc, scores, mask);
  Value weights = create<SoftmaxOp>(builder, loc, scores, APFloat(scale), isCausalSoftmax);
  if (!masks.empty()) {
    // A token that sees none has equal scores, but no weights.
    Value all = masks.front();
    for (Value mask : ArrayRef(masks).drop_front())
      all = create<AddOp>(builder, loc, all, mask);
    auto number = RankedTensorType::get({}, tensorOf(all).getElementType());
    Value least = buildFilled(builder, loc, number, forbiddenScore(number.getElementType()) / 2);
    Value isSeen = create<CompareOp>(builder, loc, all, least, "gt");
    weights = create<SelectOp>(builder, loc, isSeen, weights, buildFilled(builder, loc, number, 0));
  }
  weights = buildReshape(builder, loc, weights, {batch, kvHeads, group * tokens, seen});
  Value mixed = create<MatmulOp>(builder, loc, weights, value, false, false);
  mixed = buildReshape(builder, loc, mixed, {batch, heads, tokens, valueWidth});
  Value joined = create<TransposeOp>(builder, loc, mixed, headsFirst);
  return {buildReshape(builder, loc, joined, tensorOf(getResult()).getShape())};
}

void AttentionOp::compute(HostOperands operands, HostResults results) {
  const HostTensor &query = operands[0], &key = operands[1], &value = operands[2];
  int64_t batch = query.shape[0], tokens = query.shape[1], numKeys = key.shape[1];
  int64_t heads = getHeads(), kvHeads = getKvHeads().value_or(heads), group = heads / kvHeads;
  int64_t width = query.shape[2] / heads, valueWidth = value.shape[2] / kvHeads, offset = getOffset().value_or(0);
  double scale = getScale() ? getScale()->convertToDouble() : 1 / std::sqrt(double(width));
  SmallVector<int64_t> maskStrides;
  if (operands.size() > 3)
    maskStrides = broadcastStrides(operands[3].shape, {batch, heads, tokens, numKeys});
  auto maskAt = [&](int64_t b, int64_t head, int64_t token, int64_t seen) {
    bool isSeen =
        !getCausal() || (seen <= token + offset && (!getWindow() || seen > token + offset - int64_t(*getWindow())));
    // Behind what a mask forbids: a token that may see none by its mask sees those that it could see without.
    if (!isSeen)
      return -std::numeric_limits<double>::infinity();
    if (maskStrides.empty())
      return 0.0;
    double mask =
        operands[3].data[b * maskStrides[0] + head * maskStrides[1] + token * maskStrides[2] + seen * maskStrides[3]];
    bool isBoolean = tensorOf(getMask()).getElementType().isInteger(1);
    return !isBoolean ? mask : mask != 0 ? 0.0 : -std::numeric_limits<double>::infinity();
  };
  std::vector<double> weights(numKeys);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t token = 0; token < tokens; ++token) {
        int64_t at = (b * tokens + token) * heads + head;
        auto keyAt = [&](int64_t seen) { return (b * numKeys + seen) * kvHeads + head / group; };
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t seen = 0; seen < numKeys; ++seen) {
          weights[seen] = maskAt(b, head, token, seen);
          for (int64_t i = 0; i < width; ++i)
            weights[seen] += scale * query.data[at * width + i] * key.data[keyAt(seen) * width + i];
          largest = std::max(largest, weights[seen]);
        }
        if (!(largest > BlockAttentionOp::leastScore))
          continue;
        for (int64_t seen = 0; seen < numKeys; ++seen)
          sum += weights[seen] = std::exp(weights[seen] - largest);
        for (int64_t seen = 0; seen < numKeys; ++seen)
          for (int64_t i = 0; i < valueWidth; ++i)
            results[0].data[at * valueWidth + i] += weights[seen] / sum * value.data[keyAt(seen) * valueWidth + i];
      }
}

} // namespace dg::ir

#define DG_OPS "ir/ops/product/AttentionOps.cpp.inc"
#define DG_ADD_OPS addAttentionOps
#include "ir/ops/Family.inc"
