// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of images. Vectors run along a row of the result.
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/StridedAccess.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/reduction/PoolingOps.h"

using namespace mlir;

namespace dg::codegen {

namespace {
/// Sizes of a pooling: images (batch × channels) of height × width, windows of kernel, strides apart.
struct Pool {
  int64_t images, height, width, rows, columns, kernelHeight, kernelWidth, strideHeight, strideWidth;

  template <typename Op> Pool(Op op, Value input, Value pooled) {
    ArrayRef<int64_t> in = shapeOf(input), out = shapeOf(pooled);
    images = in[0] * in[1], height = in[2], width = in[3], rows = out[2], columns = out[3];
    kernelHeight = op.getKernel()[0], kernelWidth = op.getKernel()[1];
    ArrayRef<int64_t> strides = op.getStrides() ? *op.getStrides() : op.getKernel();
    strideHeight = strides[0], strideWidth = strides[1];
  }
};

void emitMaxPool(KernelBuilder &k, ir::MaxPool2dOp pool) {
  Pool p(pool, pool.getInput(), pool.getResult());
  int64_t perRow = p.columns * p.kernelHeight * p.kernelWidth;
  loopWholeRowsOfTile(k, p.images * p.rows, std::max<int64_t>(1, elementsPerTile / perRow), [&](Value position) {
    Value image = k.div(position, p.rows), row = k.mod(position, p.rows);
    Value source = k.add(k.mul(image, p.height * p.width), k.mul(row, p.strideHeight * p.width)),
          target = k.mul(position, p.columns);
    k.loopVectors(p.columns, [&](Value column, Lanes lanes) {
      Value first = k.add(source, k.mul(column, p.strideWidth)), largest;
      for (int64_t y = 0; y < p.kernelHeight; ++y)
        for (int64_t x = 0; x < p.kernelWidth; ++x) {
          Value element = loadStrided(k, k.buffer(0), k.add(first, y * p.width + x), lanes, p.strideWidth);
          largest = largest ? k.fmax(largest, element) : element;
        }
      k.store(largest, k.buffer(1), k.add(target, column), lanes);
    });
  });
}

/// Windows that do not overlap and are two columns wide: both columns of a row of the window are written together.
void emitPairsGrad(KernelBuilder &k, const Pool &p, Value image, Value row) {
  Value source = k.add(k.mul(image, p.height * p.width), k.mul(row, p.strideHeight * p.width));
  Value from = k.mul(k.add(k.mul(image, p.rows), row), p.columns);
  k.loopVectors(p.columns, [&](Value column, Lanes lanes) {
    Value first = k.add(source, k.mul(column, 2));
    SmallVector<Value> elements;
    for (int64_t y = 0; y < p.kernelHeight; ++y)
      for (int64_t x = 0; x < 2; ++x)
        elements.push_back(loadStrided(k, k.buffer(1), k.add(first, y * p.width + x), lanes, 2));
    Value largest = elements[0];
    for (Value element : ArrayRef(elements).drop_front())
      largest = k.fmax(largest, element);
    Value grad = k.load(k.buffer(0), k.add(from, column), lanes), zero = k.constant(0, grad);
    // `grad` is given to the first that is the largest, and is 0 from there on.
    for (int64_t y = 0; y < p.kernelHeight; ++y) {
      Value pair[2];
      for (int64_t x = 0; x < 2; ++x) {
        Value isLargest = k.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, elements[2 * y + x], largest);
        pair[x] = k.select(isLargest, grad, zero);
        grad = k.select(isLargest, zero, grad);
      }
      storePairs(k, pair[0], pair[1], k.buffer(2), k.add(first, y * p.width), lanes);
    }
  });
}

/// Any windows: one after the other.
void emitWindowGrad(KernelBuilder &k, const Pool &p, Value image, Value row) {
  Value source = k.add(k.mul(image, p.height * p.width), k.mul(row, p.strideHeight * p.width));
  Value from = k.mul(k.add(k.mul(image, p.rows), row), p.columns);
  k.loop(0, p.columns, 1, [&](Value column) {
    Value first = k.add(source, k.mul(column, p.strideWidth));
    Value largest = k.loadScalar(k.buffer(1), first), place = first;
    for (int64_t y = 0; y < p.kernelHeight; ++y)
      for (int64_t x = 0; x < p.kernelWidth; ++x) {
        Value at = k.add(first, y * p.width + x), element = k.loadScalar(k.buffer(1), at);
        Value isLarger = k.greater(element, largest);
        largest = k.select(isLarger, element, largest);
        place = k.select(isLarger, at, place);
      }
    Value sum = k.fadd(k.loadScalar(k.buffer(2), place), k.loadScalar(k.buffer(0), k.add(from, column)));
    k.storeScalar(sum, k.buffer(2), place);
  });
}

void emitMaxPoolGrad(KernelBuilder &k, ir::MaxPool2dGradOp pool) {
  Pool p(pool, pool.getInput(), pool.getGrad());
  int64_t size = p.height * p.width;
  bool isPairs = p.kernelWidth == 2 && p.strideWidth == 2 && p.strideHeight >= p.kernelHeight;
  bool isCovered =
      isPairs && p.strideHeight == p.kernelHeight && p.rows * p.strideHeight == p.height && p.columns * 2 == p.width;
  loopWholeRowsOfTile(k, p.images, std::max<int64_t>(1, elementsPerTile / size), [&](Value image) {
    if (!isCovered) {
      Value start = k.mul(image, size);
      k.loopVectors(size, [&](Value at, Lanes lanes) {
        k.store(k.splat(0.0, lanes.width), k.buffer(2), k.add(start, at), lanes);
      });
    }
    k.loop(0, p.rows, 1,
           [&](Value row) { isPairs ? emitPairsGrad(k, p, image, row) : emitWindowGrad(k, p, image, row); });
  });
}
} // namespace

void addPoolingKernels(KernelTable &table) {
  table.add(emitMaxPool);
  table.add(emitMaxPoolGrad);
}

} // namespace dg::codegen
