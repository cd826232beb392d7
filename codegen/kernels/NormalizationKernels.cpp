// SPDX-License-Identifier: Apache-2.0
// Softmax and layer norm: kernels that pass over each row (last dimension) two or three times while it is in the cache.
#include "codegen/emit/LoopNest.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/reduction/NormalizationOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::codegen {

namespace {
using Fold = KernelBuilder::Fold;
using Values = KernelBuilder::Values;

/// Rows of the last dimension of the op's first operand, cut into tiles. The body gets the number of the row and where
/// it starts.
void loopRows(KernelBuilder &k, Operation *op, llvm::function_ref<void(Value row, Value start, int64_t columns)> body) {
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  int64_t columns = shape.empty() ? 1 : shape.back(), rows = numElements(op->getOperand(0)) / columns;
  loopWholeRowsOfTile(k, rows, std::max<int64_t>(1, elementsPerTile / 2 / columns),
                      [&](Value row) { body(row, k.mul(row, columns), columns); });
}

LogicalResult emitSoftmax(KernelBuilder &k, ir::SoftmaxOp softmax) {
  double scale = softmax.getScale().convertToDouble();
  ArrayRef<int64_t> shape = shapeOf(softmax.getInput());
  bool causal = softmax.getCausal();
  if (causal && shape.size() < 2)
    return softmax.emitOpError() << "is causal and has the input " << softmax.getInput().getType()
                                 << "; expected at least two dimensions";
  loopRows(k, softmax, [&](Value row, Value start, int64_t columns) {
    // A causal row ends at its own token: vectors after it are not read, only zeroed.
    Value token, end = k.index(columns);
    if (causal) {
      token = k.mod(row, shape[shape.size() - 2]);
      end = k.min(end, k.mul(k.add(k.div(token, k.lanes), 1), k.lanes));
    }
    auto element = [&](Value at, Lanes lanes) {
      Value x = k.scale(k.load(k.buffer(0), k.add(start, at), lanes), scale);
      return causal
                 ? k.select(k.lanesUpTo(token, at, lanes), x, k.constant(-std::numeric_limits<double>::infinity(), x))
                 : x;
    };
    Value largest = k.fold(Fold::max, end, columns, element);
    Value sum = k.fold(Fold::sum, end, columns, [&](Value at, Lanes lanes) {
      Value e = k.exp(k.fsub(element(at, lanes), k.splat(largest, lanes.width)));
      k.store(e, k.buffer(1), k.add(start, at), lanes);
      return e;
    });
    Value factor = k.fdiv(k.number(1), sum);
    k.loopVectors(k.index(0), end, columns, [&](Value at, Lanes lanes) {
      Value place = k.add(start, at);
      k.store(k.fmul(k.load(k.buffer(1), place, lanes), k.splat(factor, lanes.width)), k.buffer(1), place, lanes);
    });
    if (causal && columns > k.lanes)
      k.ifThen(k.isLess(end, k.index(columns)), [&] {
        k.loopVectors(end, k.index(columns), columns, [&](Value at, Lanes lanes) {
          k.store(k.splat(0.0, lanes.width), k.buffer(1), k.add(start, at), lanes);
        });
      });
  });
  return success();
}

void emitSoftmaxGrad(KernelBuilder &k, ir::SoftmaxGradOp op) {
  double scale = op.getScale().convertToDouble();
  loopRows(k, op, [&](Value, Value start, int64_t columns) {
    auto grad = [&](Value at, Lanes lanes) { return k.load(k.buffer(0), k.add(start, at), lanes); };
    auto output = [&](Value at, Lanes lanes) { return k.load(k.buffer(1), k.add(start, at), lanes); };
    Value sum =
        k.fold(Fold::sum, columns, [&](Value at, Lanes lanes) { return k.fmul(grad(at, lanes), output(at, lanes)); });
    k.loopVectors(columns, [&](Value at, Lanes lanes) {
      Value difference = k.fsub(grad(at, lanes), k.splat(sum, lanes.width));
      k.store(k.fmul(k.scale(output(at, lanes), scale), difference), k.buffer(2), k.add(start, at), lanes);
    });
  });
}

void emitLogSoftmax(KernelBuilder &k, ir::LogSoftmaxOp op) {
  loopRows(k, op, [&](Value, Value start, int64_t columns) {
    auto element = [&](Value at, Lanes lanes) { return k.load(k.buffer(0), k.add(start, at), lanes); };
    Value largest = k.fold(Fold::max, columns, element);
    Value sum = k.fold(Fold::sum, columns, [&](Value at, Lanes lanes) {
      return k.exp(k.fsub(element(at, lanes), k.splat(largest, lanes.width)));
    });
    Value logarithm = k.log(sum);
    k.loopVectors(columns, [&](Value at, Lanes lanes) {
      Value shifted = k.fsub(element(at, lanes), k.splat(largest, lanes.width));
      k.store(k.fsub(shifted, k.splat(logarithm, lanes.width)), k.buffer(1), k.add(start, at), lanes);
    });
  });
}

void emitLogSoftmaxGrad(KernelBuilder &k, ir::LogSoftmaxGradOp op) {
  loopRows(k, op, [&](Value, Value start, int64_t columns) {
    auto grad = [&](Value at, Lanes lanes) { return k.load(k.buffer(0), k.add(start, at), lanes); };
    Value sum = k.fold(Fold::sum, columns, grad);
    k.loopVectors(columns, [&](Value at, Lanes lanes) {
      Value probability = k.exp(k.load(k.buffer(1), k.add(start, at), lanes));
      k.store(k.fsub(grad(at, lanes), k.fmul(probability, k.splat(sum, lanes.width))), k.buffer(2), k.add(start, at),
              lanes);
    });
  });
}

/// Mean and 1 / √(variance + ε) of a row.
std::pair<Value, Value> emitMoments(KernelBuilder &k, Value buffer, Value start, int64_t columns, double epsilon) {
  auto element = [&](Value at, Lanes lanes) { return k.load(buffer, k.add(start, at), lanes); };
  Value mean = k.scale(k.fold(Fold::sum, columns, element), 1.0 / double(columns));
  Value squares = k.fold(Fold::sum, columns, [&](Value at, Lanes lanes) {
    Value d = k.fsub(element(at, lanes), k.splat(mean, lanes.width));
    return k.fmul(d, d);
  });
  Value variance = k.scale(squares, 1.0 / double(columns));
  return {mean, k.fdiv(k.number(1), k.sqrt(k.fadd(variance, k.number(epsilon))))};
}

void emitLayerNorm(KernelBuilder &k, ir::LayerNormOp op) {
  double epsilon = op.getEpsilon().convertToDouble();
  loopRows(k, op, [&](Value, Value start, int64_t columns) {
    auto [mean, inverse] = emitMoments(k, k.buffer(0), start, columns, epsilon);
    k.loopVectors(columns, [&, mean = mean, inverse = inverse](Value at, Lanes lanes) {
      Value normal = k.fmul(k.fsub(k.load(k.buffer(0), k.add(start, at), lanes), k.splat(mean, lanes.width)),
                            k.splat(inverse, lanes.width));
      k.store(k.fma(normal, k.load(k.buffer(1), at, lanes), k.load(k.buffer(2), at, lanes)), k.buffer(3),
              k.add(start, at), lanes);
    });
  });
}

/// The gradient at the input is row by row, in the first tiles; those at weight and bias are sums over rows, in the
/// last tiles, each of which takes some columns of all rows (and computes the moments of each row again, which is
/// cheaper than to wait for them).
void emitLayerNormGrad(KernelBuilder &k, ir::LayerNormGradOp norm) {
  double epsilon = norm.getEpsilon().convertToDouble();
  int64_t columns = shapeOf(norm.getInput()).back(), rows = numElements(norm.getInput()) / columns;
  Value grad = k.buffer(0), input = k.buffer(1), weight = k.buffer(2), inputGrad = k.buffer(3),
        weightGrad = k.buffer(4), biasGrad = k.buffer(5);
  int64_t rowsPerTile = std::clamp<int64_t>(elementsPerTile / 2 / columns, 1, rows),
          rowTiles = alikeTiles(llvm::divideCeil(rows, rowsPerTile));
  rowsPerTile = llvm::divideCeil(rows, rowTiles);
  rowTiles = llvm::divideCeil(rows, rowsPerTile);
  int64_t columnTiles = std::clamp<int64_t>(rows * columns / (1 << 20), 1, llvm::divideCeil(columns, 16));
  columnTiles = std::min<int64_t>(columnTiles, 8);
  int64_t columnsPerTile = llvm::alignTo(llvm::divideCeil(columns, columnTiles), 16);
  columnTiles = llvm::divideCeil(columns, columnsPerTile);
  k.setTiles(rowTiles + columnTiles);

  auto normalOf = [&](Value start, Value at, Lanes lanes, Value mean, Value inverse) {
    return k.fmul(k.fsub(k.load(input, k.add(start, at), lanes), k.splat(mean, lanes.width)),
                  k.splat(inverse, lanes.width));
  };
  auto emitRow = [&](Value row) {
    Value start = k.mul(row, columns);
    auto [mean, inverse] = emitMoments(k, input, start, columns, epsilon);
    auto weighted = [&](Value at, Lanes lanes) {
      return k.fmul(k.load(grad, k.add(start, at), lanes), k.load(weight, at, lanes));
    };
    auto normal = [&, mean = mean, inverse = inverse](Value at, Lanes lanes) {
      return normalOf(start, at, lanes, mean, inverse);
    };
    Value meanGrad = k.scale(k.fold(Fold::sum, columns, weighted), 1.0 / double(columns));
    Value meanProduct =
        k.scale(k.fold(Fold::sum, columns,
                       [&](Value at, Lanes lanes) { return k.fmul(weighted(at, lanes), normal(at, lanes)); }),
                1.0 / double(columns));
    k.loopVectors(columns, [&, inverse = inverse](Value at, Lanes lanes) {
      Value rest = k.fsub(weighted(at, lanes), k.splat(meanGrad, lanes.width));
      rest = k.fsub(rest, k.fmul(normal(at, lanes), k.splat(meanProduct, lanes.width)));
      k.store(k.fmul(rest, k.splat(inverse, lanes.width)), inputGrad, k.add(start, at), lanes);
    });
  };
  auto emitColumns = [&](Value tile) {
    Value from = k.mul(tile, columnsPerTile), to = k.min(k.add(from, columnsPerTile), k.index(columns));
    k.loopVectors(from, to, columns, [&](Value at, Lanes lanes) {
      k.store(k.splat(0.0, lanes.width), weightGrad, at, lanes);
      k.store(k.splat(0.0, lanes.width), biasGrad, at, lanes);
    });
    k.loop(0, rows, 1, [&](Value row) {
      Value start = k.mul(row, columns);
      auto [mean, inverse] = emitMoments(k, input, start, columns, epsilon);
      k.loopVectors(from, to, columns, [&, mean = mean, inverse = inverse](Value at, Lanes lanes) {
        Value dy = k.load(grad, k.add(start, at), lanes);
        k.store(k.fma(dy, normalOf(start, at, lanes, mean, inverse), k.load(weightGrad, at, lanes)), weightGrad, at,
                lanes);
        k.store(k.fadd(dy, k.load(biasGrad, at, lanes)), biasGrad, at, lanes);
      });
    });
  };
  k.ifElse(
      k.isLess(k.tile(), k.index(rowTiles)), {},
      [&] {
        Value from = k.mul(k.tile(), rowsPerTile);
        k.loop(from, k.min(k.add(from, rowsPerTile), k.index(rows)), 1, emitRow);
        return Values();
      },
      [&] {
        emitColumns(k.sub(k.tile(), k.index(rowTiles)));
        return Values();
      });
}
} // namespace

void addNormalizationKernels(KernelTable &table) {
  table.add(emitSoftmax);
  table.add(emitSoftmaxGrad);
  table.add(emitLogSoftmax);
  table.add(emitLogSoftmaxGrad);
  table.add(emitLayerNorm);
  table.add(emitLayerNormGrad);
}

} // namespace dg::codegen
