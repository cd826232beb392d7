// SPDX-License-Identifier: Apache-2.0
// Pools over any windows: padding, dilation, one to three dimensions.
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/StridedAccess.h"
#include "codegen/emit/WindowLoops.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/reduction/PoolingOps.h"

#include <limits>

using namespace mlir;

namespace dg::codegen {

namespace {
using Values = KernelBuilder::Values;
constexpr double lowest = -std::numeric_limits<double>::infinity();

template <typename Op> WindowLoops loopsOf(KernelBuilder &k, Op op, Value input, Value pooled) {
  ir::Windows windows(op.getKernel(), op.getStrides() ? *op.getStrides() : op.getKernel(), op.getPadding(),
                      op.getDilation(), op.getCeil());
  return WindowLoops(k, windows, shapeOf(input).drop_front(2), shapeOf(pooled).drop_front(2));
}

int64_t numImages(Value tensor) { return shapeOf(tensor)[0] * shapeOf(tensor)[1]; }

/// Rows of the output, each with its image, depth and row.
void forEachRow(KernelBuilder &k, const WindowLoops &loops, int64_t images,
                llvm::function_ref<void(Value, Value, Value, Value)> body) {
  int64_t perRow = loops.output[2] * loops.windows.numTaps(), rows = loops.outputRows();
  loopWholeRowsOfTile(k, images * rows, std::max<int64_t>(1, elementsPerTile / perRow), [&](Value position) {
    Value image = k.div(position, rows), place = k.mod(position, rows);
    body(position, image, k.div(place, loops.output[1]), k.mod(place, loops.output[1]));
  });
}

/// One image after the other, its gradient set to 0 first; the body gets each place of the output.
void forEachPlaceOfImage(KernelBuilder &k, const WindowLoops &loops, int64_t images, Value gradient,
                         llvm::function_ref<void(Value, Value, Value, Value, Value)> body) {
  int64_t size = loops.inputPlaces();
  int64_t work = std::max(size, loops.outputPlaces() * loops.windows.numTaps());
  loopWholeRowsOfTile(k, images, std::max<int64_t>(1, elementsPerTile / work), [&](Value image) {
    Value start = k.mul(image, size);
    k.loopVectors(
        size, [&](Value at, Lanes lanes) { k.store(k.splat(0.0, lanes.width), gradient, k.add(start, at), lanes); });
    k.loop(0, loops.output[0], 1, [&](Value depth) {
      k.loop(0, loops.output[1], 1, [&](Value row) {
        k.loop(0, loops.output[2], 1, [&](Value column) {
          Value place = k.add(k.mul(k.add(k.mul(depth, loops.output[1]), row), loops.output[2]), column);
          body(k.add(k.mul(image, loops.outputPlaces()), place), start, depth, row, column);
        });
      });
    });
  });
}

void emitMaxPool(KernelBuilder &k, ir::MaxPoolOp pool) {
  WindowLoops loops = loopsOf(k, pool, pool.getInput(), pool.getResult());
  forEachRow(k, loops, numImages(pool.getInput()), [&](Value position, Value image, Value depth, Value row) {
    Value source = k.mul(image, loops.inputPlaces()), target = k.mul(position, loops.output[2]);
    loops.forEachColumn(
        [&](Value column, Lanes lanes) {
          auto larger = [&](Value, Value at, ValueRange v) -> Values {
            return {k.fmax(v[0], loadStrided(k, k.buffer(0), k.add(source, at), lanes, loops.windows.strides[2]))};
          };
          Value none = k.splat(lowest, lanes.width);
          k.store(loops.forEachTapOfColumns(depth, row, column, none, larger)[0], k.buffer(1), k.add(target, column),
                  lanes);
        },
        [&](Value column) {
          auto larger = [&](Value, Value at, ValueRange v) -> Values {
            return {k.fmax(v[0], k.loadScalar(k.buffer(0), k.add(source, at)))};
          };
          k.storeScalar(loops.forEachTap(depth, row, column, k.number(lowest), larger)[0], k.buffer(1),
                        k.add(target, column));
        });
  });
}

/// The first largest element of a window: where it lies in the image, -1 for a window in the padding.
Value findLargest(KernelBuilder &k, WindowLoops &loops, Value input, Value start, Value depth, Value row,
                  Value column) {
  Values none = {k.number(lowest), k.index(-1)};
  return loops.forEachTap(depth, row, column, none, [&](Value, Value at, ValueRange v) -> Values {
    Value element = k.loadScalar(input, k.add(start, at));
    Value isLarger = k.create<arith::OrIOp>(k.greater(element, v[0]), k.isLess(v[1], k.index(0)));
    return {k.select(isLarger, element, v[0]), k.select(isLarger, at, v[1])};
  })[1];
}

void emitMaxPoolIndices(KernelBuilder &k, ir::MaxPoolIndicesOp pool) {
  WindowLoops loops = loopsOf(k, pool, pool.getInput(), pool.getResult());
  forEachRow(k, loops, numImages(pool.getInput()), [&](Value position, Value image, Value depth, Value row) {
    Value source = k.mul(image, loops.inputPlaces()), target = k.mul(position, loops.output[2]);
    k.loop(0, loops.output[2], 1, [&](Value column) {
      Value place = findLargest(k, loops, k.buffer(0), source, depth, row, column);
      k.storeScalar(k.create<arith::IndexCastOp>(k.getI64Type(), place), k.buffer(1), k.add(target, column));
    });
  });
}

void emitMaxPoolGrad(KernelBuilder &k, ir::MaxPoolGradOp pool) {
  WindowLoops loops = loopsOf(k, pool, pool.getInput(), pool.getGrad());
  forEachPlaceOfImage(k, loops, numImages(pool.getInput()), k.buffer(2),
                      [&](Value place, Value start, Value depth, Value row, Value column) {
                        Value largest = findLargest(k, loops, k.buffer(1), start, depth, row, column);
                        k.ifThen(k.isLess(k.index(-1), largest), [&] {
                          Value at = k.add(start, largest);
                          Value sum = k.fadd(k.loadScalar(k.buffer(2), at), k.loadScalar(k.buffer(0), place));
                          k.storeScalar(sum, k.buffer(2), at);
                        });
                      });
}

void emitAvgPool(KernelBuilder &k, ir::AvgPoolOp pool) {
  WindowLoops loops = loopsOf(k, pool, pool.getInput(), pool.getResult());
  bool includesPadding = pool.getCountIncludePad();
  forEachRow(k, loops, numImages(pool.getInput()), [&](Value position, Value image, Value depth, Value row) {
    Value source = k.mul(image, loops.inputPlaces()), target = k.mul(position, loops.output[2]);
    Value counted = k.fmul(loops.countTaps(0, depth, includesPadding), loops.countTaps(1, row, includesPadding));
    auto mean = [&](Value sum, Value count) { return pool.getSum() ? sum : k.fdiv(sum, count); };
    loops.forEachColumn(
        [&](Value column, Lanes lanes) {
          auto added = [&](Value, Value at, ValueRange v) -> Values {
            return {k.fadd(v[0], loadStrided(k, k.buffer(0), k.add(source, at), lanes, loops.windows.strides[2]))};
          };
          Value sum = loops.forEachTapOfColumns(depth, row, column, k.splat(0.0, lanes.width), added)[0];
          Value count = k.splat(k.scale(counted, double(loops.windows.kernel[2])), lanes.width);
          k.store(mean(sum, count), k.buffer(1), k.add(target, column), lanes);
        },
        [&](Value column) {
          auto added = [&](Value, Value at, ValueRange v) -> Values {
            return {k.fadd(v[0], k.loadScalar(k.buffer(0), k.add(source, at)))};
          };
          Value sum = loops.forEachTap(depth, row, column, k.number(0), added)[0];
          Value count = k.fmul(counted, loops.countTaps(2, column, includesPadding));
          k.storeScalar(mean(sum, count), k.buffer(1), k.add(target, column));
        });
  });
}

void emitAvgPoolGrad(KernelBuilder &k, ir::AvgPoolGradOp pool) {
  WindowLoops loops = loopsOf(k, pool, pool.getResult(), pool.getGrad());
  bool includesPadding = pool.getCountIncludePad();
  forEachPlaceOfImage(k, loops, numImages(pool.getGrad()), k.buffer(1),
                      [&](Value place, Value start, Value depth, Value row, Value column) {
                        Value share = k.loadScalar(k.buffer(0), place);
                        Value places[] = {depth, row, column};
                        if (!pool.getSum())
                          for (auto [dim, at] : llvm::enumerate(places))
                            share = k.fdiv(share, loops.countTaps(unsigned(dim), at, includesPadding));
                        loops.forEachTap(depth, row, column, {}, [&](Value, Value at, ValueRange) -> Values {
                          Value to = k.add(start, at);
                          k.storeScalar(k.fadd(k.loadScalar(k.buffer(1), to), share), k.buffer(1), to);
                          return {};
                        });
                      });
}
} // namespace

void addWindowPoolKernels(KernelTable &table) {
  table.add(emitMaxPool);
  table.add(emitMaxPoolIndices);
  table.add(emitMaxPoolGrad);
  table.add(emitAvgPool);
  table.add(emitAvgPoolGrad);
}

} // namespace dg::codegen
