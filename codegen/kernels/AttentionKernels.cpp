// SPDX-License-Identifier: Apache-2.0
// Attention in blocks of tokens (FlashAttention, arXiv 2205.14135): a tile is one head of one batch, backwards one head
// of the key with its group. It walks the blocks of keys, and for each the blocks of queries that see it, with one
// block of scores on the stack at a time.
#include "codegen/emit/Gemm.h"
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/RowCopy.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/product/AttentionOps.h"

#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;

namespace dg::codegen {

namespace {
using Fold = KernelBuilder::Fold;

/// Some tokens in a row: their number is static, where they start is not.
struct TokenBlock {
  Value number, from;
  int64_t tokens;
};

/// What forward and backward share: the heads, their blocks, who sees whom, and products of blocks.
class HeadBlocks {
public:
  /// `queryOperand` is the number of the query; key and value follow, the mask is the last operand where there is one.
  template <typename Op>
  HeadBlocks(KernelBuilder &k, Op op)
      : k(k), scale(op.getScale().convertToDouble()), isCausal(op.getCausal()), width(op.getHeadWidth()),
        offset(op.getOffset().value_or(0)), window(op.getWindow().value_or(0)) {
    ArrayRef<int64_t> query = shapeOf(op.getQuery()), key = shapeOf(op.getKey());
    batch = query[0], tokens = query[1], rowStride = query[2];
    seen = key[1], keyRowStride = key[2];
    heads = rowStride / width;
    group = keyRowStride == 0 ? 1 : rowStride / keyRowStride;
    queryBlock = std::min<int64_t>(tokens, mostTokens), keyBlock = std::min<int64_t>(seen, mostTokens);
    scoreStride = llvm::alignTo(keyBlock, k.lanes);
    if (Value tensor = op.getMask()) {
      mask = k.buffer(op->getNumOperands() - 1);
      isBoolean = getElementTypeOrSelf(tensor.getType()).isInteger(1);
      maskStrides = broadcastStrides(shapeOf(tensor), {batch, heads, tokens, seen});
    }
  }

  /// Sets the tiles: one for each head of the query, or of the key with its group.
  void begin(bool isGrouped) {
    int64_t count = isGrouped ? heads / group : heads;
    k.setTiles(batch * count);
    batchNumber = k.div(k.tile(), count);
    Value head = k.mod(k.tile(), count);
    keyOffset = k.add(k.mul(batchNumber, seen * keyRowStride), k.mul(isGrouped ? head : k.div(head, group), width));
    firstHead = isGrouped ? k.mul(head, group) : head;
    enterHead(k.index(0));
  }
  /// Goes to a head of the query: `number` in the tile's group.
  void enterHead(Value number) {
    Value head = k.add(firstHead, number);
    queryOffset = k.add(k.mul(batchNumber, tokens * rowStride), k.mul(head, width));
    rowOffset = k.add(k.mul(batchNumber, tokens * heads), head);
    if (mask)
      maskOffset = k.add(k.mul(batchNumber, maskStrides[0]), k.mul(head, maskStrides[1]));
  }
  /// Calls the body for each head of the tile's group.
  void forEachHead(llvm::function_ref<void(Value number)> body) {
    if (group == 1)
      return body(k.index(0));
    k.loop(0, group, 1, [&](Value number) {
      enterHead(number);
      body(number);
    });
  }

  /// Where one number for each token and head lies.
  Value rowPlace(Value token) { return k.add(rowOffset, k.mul(token, heads)); }
  MatrixRef queryRows(unsigned buffer, const TokenBlock &block) {
    return {k.buffer(buffer), k.add(queryOffset, k.mul(block.from, rowStride)), rowStride, 1};
  }
  MatrixRef keyRows(unsigned buffer, const TokenBlock &block) {
    return {k.buffer(buffer), k.add(keyOffset, k.mul(block.from, keyRowStride)), keyRowStride, 1};
  }
  /// A workspace for one block of scores.
  MatrixRef scores() { return {k.stack(queryBlock * scoreStride), k.index(0), scoreStride, 1}; }
  /// A workspace for one block of keys, turned.
  MatrixRef turnedKeys() { return {k.stack(width * scoreStride), k.index(0), scoreStride, 1}; }

  void forEachKeyBlock(llvm::function_ref<void(const TokenBlock &)> body) {
    forEachBlock(k.index(0), {}, seen, keyBlock, body);
  }
  /// The blocks of queries with some token that sees some of the keys.
  void forEachQueryBlock(const TokenBlock &keys, llvm::function_ref<void(const TokenBlock &)> body) {
    if (!isCausal)
      return forEachBlock(k.index(0), {}, tokens, queryBlock, body);
    if (isSquare())
      return forEachBlock(keys.number, {}, tokens, queryBlock, body, /*isLast=*/keys.tokens < keyBlock);
    // Token i sees the keys in (i + offset - window, i + offset].
    Value zero = k.index(0), all = k.index(tokens);
    Value first = k.min(k.max(k.sub(keys.from, k.index(offset)), zero), all), end;
    if (window > 0)
      end = k.min(k.max(k.add(keys.from, keys.tokens - 1 - offset + window), zero), all);
    forEachBlock(k.div(first, queryBlock), end, tokens, queryBlock, body);
  }

  /// c = a · b, or c += a · b, with a of `m` rows and b, which is not turned, of `n` columns.
  void multiply(const MatrixRef &a, const MatrixRef &b, const MatrixRef &c, int64_t m, int64_t n, int64_t depth,
                bool adds) {
    GemmBlocking blocking = GemmBlocking::whole(k.target, m, n, depth, a, b);
    blocking.addsToResult = adds;
    emitGemmBlock(k, blocking, a, b, c, k.index(0), k.index(0));
  }

  static MatrixRef turned(const MatrixRef &matrix) {
    return {matrix.buffer, matrix.offset, matrix.columnStride, matrix.rowStride};
  }

  /// Writes rows × width of `from` to `to` with columns as rows; what pads them to full vectors is 0.
  void turn(const MatrixRef &from, int64_t rows, const MatrixRef &to) {
    auto square = [&](Value row, int64_t numRows, Value column, int64_t numColumns) {
      SmallVector<Value> lines;
      for (int64_t i = 0; i < k.lanes; ++i) {
        Value at = k.add(k.add(from.offset, k.mul(k.add(row, i), from.rowStride)), column);
        lines.push_back(i < numRows ? k.load(from.buffer, at, {k.lanes, numColumns}) : k.splat(0.0, k.lanes));
      }
      lines = transposeSquare(k, lines);
      for (int64_t i = 0; i < numColumns; ++i)
        k.store(lines[i], to.buffer, k.add(k.add(to.offset, k.mul(k.add(column, i), to.rowStride)), row),
                {k.lanes, k.lanes});
    };
    auto squares = [&](Value row, int64_t numRows) {
      int64_t rest = width % k.lanes;
      if (width >= k.lanes)
        k.loop(0, width - rest, k.lanes, [&](Value column) { square(row, numRows, column, k.lanes); });
      if (rest)
        square(row, numRows, k.index(width - rest), rest);
    };
    int64_t rest = rows % k.lanes;
    if (rows >= k.lanes)
      k.loop(0, rows - rest, k.lanes, [&](Value row) { squares(row, k.lanes); });
    if (rest)
      squares(k.index(rows - rest), rest);
  }

  /// `weight` where the row's token sees the column's, `other` elsewhere.
  Value maskWeights(Value weight, const TokenBlock &queries, const TokenBlock &keys, Value row, Value column,
                    Lanes lanes, double other) {
    if (!isCausal)
      return weight;
    if (isSquare()) {
      // Blocks of queries and keys are cut alike: in the block on the diagonal row r sees the columns up to r.
      Value last = k.select(k.isEqual(queries.number, keys.number), row, k.index(keys.tokens));
      return k.select(k.lanesUpTo(last, column, lanes), weight, k.constant(other, weight));
    }
    Value last = k.sub(k.add(k.add(queries.from, row), offset), keys.from);
    weight = k.select(k.lanesUpTo(last, column, lanes), weight, k.constant(other, weight));
    if (window == 0)
      return weight;
    return k.select(k.lanesUpTo(k.sub(last, k.index(window)), column, lanes), k.constant(other, weight), weight);
  }

  /// The scores of a row in a block: products times the scale, and what the mask adds.
  Value scoreOf(Value product, const TokenBlock &queries, const TokenBlock &keys, Value row, Value column,
                Lanes lanes) {
    Value score = k.scale(product, scale);
    if (!mask)
      return score;
    Value at = k.add(maskOffset, k.mul(k.add(queries.from, row), maskStrides[2]));
    Value added =
        maskStrides[3] == 0 ? k.loadSplat(mask, at, lanes) : k.load(mask, k.add(k.add(at, keys.from), column), lanes);
    if (!isBoolean)
      return k.fadd(score, added);
    return k.select(added, score, k.constant(-std::numeric_limits<double>::infinity(), score));
  }

  void fill(const MatrixRef &matrix, Value rows, double number) {
    k.loop(k.index(0), rows, 1, [&](Value row) {
      k.loopVectors(width, [&](Value at, Lanes lanes) {
        k.store(k.splat(number, lanes.width), matrix.buffer,
                k.add(k.add(matrix.offset, k.mul(row, matrix.rowStride)), at), lanes);
      });
    });
  }

  /// Rows of a head's width times a number each.
  void copyRows(const MatrixRef &from, const MatrixRef &to, int64_t rows, llvm::function_ref<Value(Value row)> factor) {
    k.loop(0, rows, 1, [&](Value row) {
      Value number = factor ? factor(row) : Value();
      k.loopVectors(width, [&](Value at, Lanes lanes) {
        Value x = k.load(from.buffer, k.add(k.add(from.offset, k.mul(row, from.rowStride)), at), lanes);
        k.store(number ? k.fmul(x, k.splat(number, lanes.width)) : x, to.buffer,
                k.add(k.add(to.offset, k.mul(row, to.rowStride)), at), lanes);
      });
    });
  }

  /// Rows of a head's width as numbers that are read one at a time: narrower ones are widened into `workspace`.
  MatrixRef widened(const MatrixRef &rows, int64_t count, const MatrixRef &workspace) {
    if (isPlain())
      return rows;
    copyRows(rows, workspace, count, nullptr);
    return workspace;
  }
  /// Room for the rows of a block of queries, where `widened` needs it.
  MatrixRef queryWorkspace() { return {isPlain() ? k.buffer(0) : k.stack(queryBlock * width), k.index(0), width, 1}; }

  /// Where sums over all tokens of a head are kept: in the result, if it has the type of sums.
  MatrixRef sumsOver(unsigned buffer, Value offset, int64_t rows) {
    if (isPlain())
      return {k.buffer(buffer), offset, rowStride, 1};
    return {k.stack(rows * width), k.index(0), width, 1};
  }
  /// The same for each head of a group; in f32 only the result is as large.
  MatrixRef groupSumsOver(unsigned buffer) {
    if (isPlain())
      return {k.buffer(buffer), {}, rowStride, 1};
    return {k.stack(group * tokens * width), {}, width, 1};
  }
  /// Those of one head of the group.
  MatrixRef sumsOfHead(const MatrixRef &sums, Value number) {
    MatrixRef own = sums;
    own.offset = isPlain() ? queryOffset : k.mul(number, tokens * width);
    return own;
  }
  static MatrixRef rowsFrom(KernelBuilder &k, const MatrixRef &matrix, Value from) {
    return {matrix.buffer, k.add(matrix.offset, k.mul(from, matrix.rowStride)), matrix.rowStride, 1};
  }

  /// Whether operands and results have the type of sums.
  bool isPlain() { return k.elementOf(k.buffer(0)) == k.real; }

  KernelBuilder &k;
  const double scale;
  const bool isCausal;
  const int64_t width; ///< of a head
  const int64_t offset, window;
  int64_t batch, tokens, seen, heads, group, rowStride, keyRowStride, queryBlock, keyBlock, scoreStride;
  Value queryOffset, keyOffset, rowOffset;

private:
  /// Three blocks of 64 × 64 and two of 64 × head width stay in the second-level cache; the half of a block on the
  /// diagonal that no row sees is little.
  static constexpr int64_t mostTokens = 64;

  /// Whether no token sees one after its own, and each all before it.
  bool isSquare() const { return isCausal && offset == 0 && window == 0 && tokens == seen; }

  /// From block number `first` on, up to token `end` where it is given, or to the last of `total`. With `isLast`
  /// `first` is known to be the last block.
  void forEachBlock(Value first, Value end, int64_t total, int64_t block,
                    llvm::function_ref<void(const TokenBlock &)> body, bool isLast = false) {
    if (total == 0)
      return;
    int64_t full = total / block, rest = total % block;
    Value endFull = k.index(full);
    if (end)
      endFull = k.min(endFull, k.div(k.add(end, block - 1), block));
    if (full > 0 && !isLast)
      k.loop(first, endFull, 1, [&](Value number) { body({number, k.mul(number, block), block}); });
    if (rest == 0)
      return;
    auto ofRest = [&] { body({k.index(full), k.index(full * block), rest}); };
    if (end)
      k.ifThen(k.isLess(k.index(full * block), end), ofRest);
    else
      ofRest();
  }

  Value batchNumber, firstHead, mask, maskOffset;
  SmallVector<int64_t> maskStrides; ///< of batch, head, token and seen token
  bool isBoolean = false;
};

/// Weights are relative to the largest score so far; when a larger one comes, what was summed before shrinks.
void emitBlockAttention(KernelBuilder &k, ir::BlockAttentionOp op) {
  HeadBlocks head(k, op);
  head.begin(/*isGrouped=*/false);
  const unsigned firstResult = op->getNumOperands();
  Value logsumexp = k.buffer(firstResult + 1);
  MatrixRef sums = head.sumsOver(firstResult, head.queryOffset, head.tokens),
            result = {k.buffer(firstResult), head.queryOffset, head.rowStride, 1};
  MatrixRef scores = head.scores(), keysTurned = head.turnedKeys(), wideQuery = head.queryWorkspace();
  // Of each row: the largest score, and the sum of e^(score - largest).
  Value largest = k.stack(head.tokens), total = k.stack(head.tokens);
  k.loop(0, head.tokens, 1, [&](Value token) {
    k.storeScalar(k.number(std::numeric_limits<float>::lowest()), largest, token);
    k.storeScalar(k.number(0), total, token);
  });
  head.fill(sums, k.index(head.tokens), 0);

  head.forEachKeyBlock([&](const TokenBlock &keys) {
    head.turn(head.keyRows(1, keys), keys.tokens, keysTurned);
    head.forEachQueryBlock(keys, [&](const TokenBlock &queries) {
      head.multiply(head.widened(head.queryRows(0, queries), queries.tokens, wideQuery), keysTurned, scores,
                    queries.tokens, keys.tokens, head.width, false);
      k.loop(0, queries.tokens, 1, [&](Value row) {
        Value start = k.mul(row, head.scoreStride), token = k.add(queries.from, row);
        auto score = [&](Value at, Lanes lanes) {
          Value x = head.scoreOf(k.load(scores.buffer, k.add(start, at), lanes), queries, keys, row, at, lanes);
          return head.maskWeights(x, queries, keys, row, at, lanes, -std::numeric_limits<double>::infinity());
        };
        Value before = k.loadScalar(largest, token);
        Value now = k.fmax(before, k.fold(Fold::max, keys.tokens, score));
        Value sum = k.fold(Fold::sum, keys.tokens, [&](Value at, Lanes lanes) {
          Value weight = k.exp(k.fsub(score(at, lanes), k.splat(now, lanes.width)));
          k.store(weight, scores.buffer, k.add(start, at), lanes);
          return weight;
        });
        Value shrunk = k.exp(k.fsub(before, now));
        k.storeScalar(now, largest, token);
        k.storeScalar(k.fma(k.loadScalar(total, token), shrunk, sum), total, token);
        Value place = k.add(sums.offset, k.mul(token, sums.rowStride));
        k.loopVectors(head.width, [&](Value at, Lanes lanes) {
          Value x = k.load(sums.buffer, k.add(place, at), lanes);
          k.store(k.fmul(x, k.splat(shrunk, lanes.width)), sums.buffer, k.add(place, at), lanes);
        });
      });
      head.multiply(scores, head.keyRows(2, keys), HeadBlocks::rowsFrom(k, sums, queries.from), queries.tokens,
                    head.width, keys.tokens, true);
    });
  });

  // A token that sees none, be it by its mask: its result is 0, and so are its weights backwards.
  auto seesSome = [&](Value token) {
    return k.greater(k.loadScalar(largest, token), k.number(ir::BlockAttentionOp::leastScore));
  };
  k.loop(0, head.tokens, 1, [&](Value token) {
    Value sum = k.loadScalar(total, token);
    Value logarithm = k.select(seesSome(token), k.fadd(k.loadScalar(largest, token), k.log(sum)),
                               k.number(std::numeric_limits<double>::infinity()));
    k.storeScalar(logarithm, logsumexp, head.rowPlace(token));
  });
  head.copyRows(sums, result, head.tokens, [&](Value token) {
    return k.select(seesSome(token), k.fdiv(k.number(1), k.loadScalar(total, token)), k.number(0));
  });
}

void emitBlockAttentionGrad(KernelBuilder &k, ir::BlockAttentionGradOp op) {
  HeadBlocks head(k, op);
  head.begin(/*isGrouped=*/true);
  const unsigned firstResult = op->getNumOperands();
  Value logsumexp = k.buffer(4), rowSums = k.buffer(5);
  MatrixRef queryGrads = head.groupSumsOver(firstResult);
  MatrixRef weights = head.scores(), scoreGrads = head.scores();
  MatrixRef keysTurned = head.turnedKeys(), valuesTurned = head.turnedKeys();
  MatrixRef keyGrad = {k.stack(head.keyBlock * head.width), k.index(0), head.width, 1};
  MatrixRef valueGrad = {k.stack(head.keyBlock * head.width), k.index(0), head.width, 1};
  MatrixRef wideGrad = head.queryWorkspace(), wideQuery = head.queryWorkspace();
  head.forEachHead([&](Value number) { head.fill(head.sumsOfHead(queryGrads, number), k.index(head.tokens), 0); });

  head.forEachKeyBlock([&](const TokenBlock &keys) {
    head.turn(head.keyRows(2, keys), keys.tokens, keysTurned);
    head.turn(head.keyRows(3, keys), keys.tokens, valuesTurned);
    head.fill(keyGrad, k.index(keys.tokens), 0);
    head.fill(valueGrad, k.index(keys.tokens), 0);
    head.forEachHead([&](Value number) {
      MatrixRef queryGrad = head.sumsOfHead(queryGrads, number);
      head.forEachQueryBlock(keys, [&](const TokenBlock &queries) {
        MatrixRef grad = head.widened(head.queryRows(0, queries), queries.tokens, wideGrad),
                  query = head.widened(head.queryRows(1, queries), queries.tokens, wideQuery);
        head.multiply(query, keysTurned, weights, queries.tokens, keys.tokens, head.width, false);
        head.multiply(grad, valuesTurned, scoreGrads, queries.tokens, keys.tokens, head.width, false);
        k.loop(0, queries.tokens, 1, [&](Value row) {
          Value start = k.mul(row, head.scoreStride), place = head.rowPlace(k.add(queries.from, row));
          Value logarithm = k.loadScalar(logsumexp, place), sum = k.loadScalar(rowSums, place);
          k.loopVectors(keys.tokens, [&](Value at, Lanes lanes) {
            Value product = k.load(weights.buffer, k.add(start, at), lanes);
            Value score = head.scoreOf(product, queries, keys, row, at, lanes);
            Value weight = k.exp(k.fsub(score, k.splat(logarithm, lanes.width)));
            weight = head.maskWeights(weight, queries, keys, row, at, lanes, 0);
            Value slope = k.fsub(k.load(scoreGrads.buffer, k.add(start, at), lanes), k.splat(sum, lanes.width));
            k.store(weight, weights.buffer, k.add(start, at), lanes);
            k.store(k.scale(k.fmul(weight, slope), head.scale), scoreGrads.buffer, k.add(start, at), lanes);
          });
        });
        head.multiply(HeadBlocks::turned(weights), grad, valueGrad, keys.tokens, head.width, queries.tokens, true);
        head.multiply(HeadBlocks::turned(scoreGrads), query, keyGrad, keys.tokens, head.width, queries.tokens, true);
        head.multiply(scoreGrads, head.keyRows(2, keys), HeadBlocks::rowsFrom(k, queryGrad, queries.from),
                      queries.tokens, head.width, keys.tokens, true);
      });
    });
    head.copyRows(keyGrad, head.keyRows(firstResult + 1, keys), keys.tokens, nullptr);
    head.copyRows(valueGrad, head.keyRows(firstResult + 2, keys), keys.tokens, nullptr);
  });
  if (!head.isPlain())
    head.forEachHead([&](Value number) {
      head.copyRows(head.sumsOfHead(queryGrads, number), {k.buffer(firstResult), head.queryOffset, head.rowStride, 1},
                    head.tokens, nullptr);
    });
}

/// One row of all heads of a token at a time: sines and cosines of a token serve all its heads.
void emitRotatePairs(KernelBuilder &k, ir::RotatePairsOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getInput());
  int64_t heads = shape[2], width = shape[3], pairs = shapeOf(op.getCos()).back(),
          angleRows = numElements(op.getCos()) / std::max<int64_t>(pairs, 1);
  int64_t rowElements = std::max<int64_t>(1, heads * width);
  loopWholeRowsOfTile(k, shape[0] * shape[1], std::max<int64_t>(1, elementsPerTile / rowElements), [&](Value row) {
    Value angles = k.mul(angleRows == shape[0] * shape[1] ? row : k.mod(row, angleRows), pairs);
    k.loop(0, heads, 1, [&](Value head) {
      Value start = k.add(k.mul(row, heads * width), k.mul(head, width));
      if (op.getInterleaved()) {
        k.loop(0, pairs, 1, [&](Value pair) {
          Value cos = k.loadScalar(k.buffer(1), k.add(angles, pair)),
                sin = k.loadScalar(k.buffer(2), k.add(angles, pair));
          Value at = k.add(start, k.mul(pair, 2));
          Value a = k.loadScalar(k.buffer(0), at), b = k.loadScalar(k.buffer(0), k.add(at, 1));
          k.storeScalar(k.fsub(k.fmul(a, cos), k.fmul(b, sin)), k.buffer(3), at);
          k.storeScalar(k.fadd(k.fmul(b, cos), k.fmul(a, sin)), k.buffer(3), k.add(at, 1));
        });
      } else {
        k.loopVectors(pairs, [&](Value pair, Lanes lanes) {
          Value cos = k.load(k.buffer(1), k.add(angles, pair), lanes),
                sin = k.load(k.buffer(2), k.add(angles, pair), lanes);
          Value first = k.add(start, pair), second = k.add(first, pairs);
          Value a = k.load(k.buffer(0), first, lanes), b = k.load(k.buffer(0), second, lanes);
          k.store(k.fsub(k.fmul(a, cos), k.fmul(b, sin)), k.buffer(3), first, lanes);
          k.store(k.fadd(k.fmul(b, cos), k.fmul(a, sin)), k.buffer(3), second, lanes);
        });
      }
      if (2 * pairs < width)
        copyRow(k, k.buffer(0), k.add(start, 2 * pairs), k.buffer(3), k.add(start, 2 * pairs), width - 2 * pairs);
    });
  });
}
} // namespace

void addAttentionKernels(KernelTable &table) {
  table.add(emitBlockAttention);
  table.add(emitBlockAttentionGrad);
  table.add(emitRotatePairs);
}

} // namespace dg::codegen
