// SPDX-License-Identifier: Apache-2.0
// Convolutions as matrix products with patches. The patches of one image, or of some rows of it, are laid out on the
// stack, where they stay in the cache for the product that follows:
//
//   result [o, pixels]            = weight [o, c·kh·kw] · patches [c·kh·kw, pixels]        patches: input under each
//   tap input gradient                = sum over taps of weightᵀ [c·kh·kw, o] · grad [o, pixels], added back at the
//   taps' places weight gradient [o, c·kh·kw]  = Σ images grad [o, pixels] · patchesᵀ                   sums along
//   pixels in vectors
#include "codegen/emit/Gemm.h"
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/StridedAccess.h"
#include "codegen/kernels/KernelTable.h"
#include "codegen/kernels/windows/BlockedConvKernels.h"
#include "ir/ops/product/ConvolutionOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::codegen {

namespace {
using Values = KernelBuilder::Values;

/// The most elements of patches on the stack at a time, and where a kernel gives up.
constexpr int64_t patchElements = 48 * 1024, mostPatchElements = 192 * 1024;
/// Weights of more elements do not stay in the first-level cache.
constexpr int64_t fewestWeightsOfProduct = 8 * 1024;

struct Conv {
  int64_t images, channels, height, width; ///< of the input
  int64_t outputs, rows, columns;          ///< of the result
  int64_t kernelHeight, kernelWidth, strideHeight, strideWidth, padHeight, padWidth;

  template <typename Op> Conv(Op op, ArrayRef<int64_t> input, ArrayRef<int64_t> weight, ArrayRef<int64_t> result) {
    images = input[0], channels = input[1], height = input[2], width = input[3];
    outputs = weight[0], kernelHeight = weight[2], kernelWidth = weight[3];
    rows = result[2], columns = result[3];
    strideHeight = op.getStrides()[0], strideWidth = op.getStrides()[1];
    padHeight = op.getPadding()[0], padWidth = op.getPadding()[1];
  }
  int64_t taps() const { return channels * kernelHeight * kernelWidth; }
  int64_t pixels() const { return rows * columns; }
  bool isPadded() const { return padHeight || padWidth; }
  int64_t paddedWidth() const { return width + 2 * padWidth; }
  int64_t paddedHeight() const { return height + 2 * padHeight; }
};

int64_t largestDivisor(int64_t number, int64_t most) {
  int64_t divisor = std::max<int64_t>(1, std::min(number, most));
  while (number % divisor)
    --divisor;
  return divisor;
}

/// Whether elements are stored in fewer bits than they are computed with.
bool isNarrow(KernelBuilder &k) { return k.elementOf(k.buffer(0)) != k.real; }

LogicalResult tooLarge(Operation *op, int64_t elements) {
  return op->emitOpError() << "needs patches of " << elements << " elements at a time, of at most " << mostPatchElements
                           << ": cut the image or its channels";
}

/// Channels of images as patches see them: with zeros around them where the convolution pads.
class PaddedChannel {
public:
  PaddedChannel(KernelBuilder &k, const Conv &conv, Value input) : k(k), conv(conv), input(input) {
    if (!conv.isPadded())
      return;
    int64_t size = conv.paddedHeight() * conv.paddedWidth();
    padded = k.stack(size);
    k.loopVectors(size, [&](Value at, Lanes lanes) { k.store(k.splat(0.0, lanes.width), padded, at, lanes); });
  }

  /// Turns to the channel that starts at `start` in the input.
  void select(Value start) { select(start, k.index(0), conv.paddedHeight()); }
  /// The same for `numLines` lines of it, padding counted, from line `first` on: no others may be looked at.
  void select(Value start, Value first, int64_t numLines) {
    this->start = start;
    if (!conv.isPadded())
      return;
    Value from = k.max(k.index(0), k.sub(first, k.index(conv.padHeight)));
    Value to = k.min(k.index(conv.height), k.sub(k.add(first, numLines), k.index(conv.padHeight)));
    k.loop(from, to, 1, [&](Value row) {
      Value from = k.add(start, k.mul(row, conv.width));
      Value to = k.add(k.mul(row, conv.paddedWidth()), conv.padHeight * conv.paddedWidth() + conv.padWidth);
      k.loopVectors(conv.width, [&](Value at, Lanes lanes) {
        k.store(k.load(input, k.add(from, at), lanes), padded, k.add(to, at), lanes);
      });
    });
  }

  /// Copies what tap (y, x) sees of `rows` rows of the result, from row `first` on, to a row of patches.
  void copyTap(Value y, Value x, Value first, int64_t rows, Value patches, Value to) {
    k.loop(0, rows, 1, [&](Value row) {
      Value line = k.add(k.mul(k.add(first, row), conv.strideHeight), y);
      Value from = k.add(k.mul(line, conv.paddedWidth()), x), target = k.add(to, k.mul(row, conv.columns));
      k.loopVectors(conv.columns, [&](Value column, Lanes lanes) {
        Value at = k.add(from, k.mul(column, conv.strideWidth));
        Value seen = conv.isPadded() ? loadStrided(k, padded, at, lanes, conv.strideWidth)
                                     : loadStrided(k, input, k.add(start, at), lanes, conv.strideWidth);
        k.store(seen, patches, k.add(target, column), lanes);
      });
    });
  }

private:
  KernelBuilder &k;
  const Conv &conv;
  Value input, padded, start;
};

LogicalResult emitConv(KernelBuilder &k, ir::Conv2dOp convolution) {
  if (convolution.getBias())
    return convolution.emitOpError() << "has a bias; it must be decomposed first";
  Conv conv(convolution, shapeOf(convolution.getInput()), shapeOf(convolution.getWeight()),
            shapeOf(convolution.getResult()));
  int64_t rows = largestDivisor(conv.rows, patchElements / (conv.taps() * conv.columns));
  // Columns that do not fill a vector cost more than patches beyond the second-level cache.
  if (rows * conv.columns < k.lanes)
    rows = largestDivisor(conv.rows, mostPatchElements * 3 / 4 / (conv.taps() * conv.columns));
  int64_t columns = rows * conv.columns, blocks = conv.rows / rows;
  if (conv.taps() * columns > mostPatchElements)
    return tooLarge(convolution, conv.taps() * columns);

  int64_t stride = llvm::alignTo(columns, k.lanes);
  Value patches = k.stack(conv.taps() * stride);
  PaddedChannel channels(k, conv, k.buffer(0));
  MatrixRef weight = {k.buffer(1), k.index(0), conv.taps(), 1}, right = {patches, k.index(0), stride, 1};
  GemmBlocking blocking = GemmBlocking::whole(k.target, conv.outputs, columns, conv.taps(), weight, right);
  // Rows of weights that fall on the same lines of the first-level cache are copied, a panel of them at a time; and
  // those that are widened.
  blocking.packsLeft = isNarrow(k) || conv.taps() * k.target.realBytes % 4096 == 0;
  double flops = 2.0 * double(conv.outputs) * double(columns) * double(conv.taps());
  loopWholeRowsOfTile(k, conv.images * blocks, std::max<int64_t>(1, int64_t(3e6 / flops)), [&](Value position) {
    Value image = k.div(position, blocks), first = k.mul(k.mod(position, blocks), rows);
    k.loop(0, conv.channels, 1, [&](Value channel) {
      channels.select(k.mul(k.add(k.mul(image, conv.channels), channel), conv.height * conv.width),
                      k.mul(first, conv.strideHeight), (rows - 1) * conv.strideHeight + conv.kernelHeight);
      k.loop(0, conv.kernelHeight, 1, [&](Value y) {
        k.loop(0, conv.kernelWidth, 1, [&](Value x) {
          Value tap = k.add(k.mul(k.add(k.mul(channel, conv.kernelHeight), y), conv.kernelWidth), x);
          channels.copyTap(y, x, first, rows, patches, k.mul(tap, stride));
        });
      });
    });
    MatrixRef result = {k.buffer(2), k.add(k.mul(image, conv.outputs * conv.pixels()), k.mul(first, conv.columns)),
                        conv.pixels(), 1};
    emitGemmBlock(k, blocking, weight, right, result, k.index(0), k.index(0));
  });
  return success();
}

/// The first of `count` positions p with p · stride + tap - pad >= 0, and the end of those below `size`.
std::pair<int64_t, int64_t> rangeInside(int64_t count, int64_t stride, int64_t tap, int64_t pad, int64_t size) {
  int64_t first = llvm::divideCeil(std::max<int64_t>(0, pad - tap), stride);
  int64_t end = std::min<int64_t>(count, llvm::divideCeil(std::max<int64_t>(0, size + pad - tap), stride));
  return {std::min(first, end), end};
}

LogicalResult emitConvInputGrad(KernelBuilder &k, ir::Conv2dInputGradOp convolution) {
  Conv conv(convolution, shapeOf(convolution.getResult()), shapeOf(convolution.getWeight()),
            shapeOf(convolution.getGrad()));
  // A unit is one row of the kernel in one channel.
  int64_t units = conv.channels * conv.kernelHeight, perUnit = conv.kernelWidth * conv.pixels();
  constexpr int64_t mostTaps = 512;
  int64_t unitsPerBlock = largestDivisor(units, std::min(patchElements / perUnit, mostTaps / conv.kernelWidth)),
          taps = unitsPerBlock * conv.kernelWidth;
  if (unitsPerBlock * perUnit > mostPatchElements)
    return tooLarge(convolution, perUnit);

  int64_t stride = llvm::alignTo(conv.pixels(), k.lanes), size = conv.channels * conv.height * conv.width;
  Value patches = k.stack(taps * stride);
  MatrixRef weight = {k.buffer(1), {}, 1, conv.taps()}, grad = {k.buffer(0), {}, conv.pixels(), 1},
            product = {patches, k.index(0), stride, 1};
  GemmBlocking blocking = GemmBlocking::whole(k.target, taps, conv.pixels(), conv.outputs, weight, grad);
  // Weights are read down their columns, again for each panel of pixels: beyond the first-level cache they are packed.
  blocking.packsLeft = isNarrow(k) || (taps * conv.outputs > fewestWeightsOfProduct && blocking.columnPanels > 1);
  double flops = 2.0 * double(conv.outputs) * double(conv.pixels()) * double(conv.taps());
  // Taps of a small image are added up in f32, whatever the result has.
  constexpr int64_t mostSums = 64 * 1024;
  bool keepsSums = isNarrow(k) && size <= mostSums;
  Value sums = keepsSums ? k.stack(size) : k.buffer(2);
  loopWholeRowsOfTile(k, conv.images, std::max<int64_t>(1, int64_t(3e6 / flops)), [&](Value image) {
    Value start = keepsSums ? k.index(0) : k.mul(image, size);
    k.loopVectors(size,
                  [&](Value at, Lanes lanes) { k.store(k.splat(0.0, lanes.width), sums, k.add(start, at), lanes); });
    k.loop(0, units, unitsPerBlock, [&](Value firstUnit) {
      weight.offset = k.mul(firstUnit, conv.kernelWidth);
      grad.offset = k.mul(image, conv.outputs * conv.pixels());
      emitGemmBlock(k, blocking, weight, grad, product, k.index(0), k.index(0));
      k.loop(0, unitsPerBlock, 1, [&](Value unit) {
        Value channel = k.div(k.add(firstUnit, unit), conv.kernelHeight),
              y = k.mod(k.add(firstUnit, unit), conv.kernelHeight);
        Value target = k.add(start, k.mul(channel, conv.height * conv.width));
        // Rows of the gradient whose tap falls inside the image.
        Value above = k.max(k.index(0), k.sub(k.index(conv.padHeight), y));
        Value below = k.max(k.index(0), k.sub(k.index(conv.height + conv.padHeight), y));
        Value first = k.div(k.add(above, conv.strideHeight - 1), conv.strideHeight);
        Value end = k.min(k.index(conv.rows), k.div(k.add(below, conv.strideHeight - 1), conv.strideHeight));
        // One tap after the other over all rows: a row that was just written is not read at once at another alignment,
        // which would wait for the write to reach the cache.
        for (int64_t x = 0; x < conv.kernelWidth; ++x) {
          auto [left, right] = rangeInside(conv.columns, conv.strideWidth, x, conv.padWidth, conv.width);
          if (left == right)
            continue;
          k.loop(first, end, 1, [&, left = left, right = right](Value row) {
            Value line = k.sub(k.add(k.mul(row, conv.strideHeight), y), k.index(conv.padHeight));
            Value to = k.add(k.add(target, k.mul(line, conv.width)), left * conv.strideWidth + x - conv.padWidth);
            Value from =
                k.add(k.add(k.mul(k.add(k.mul(unit, conv.kernelWidth), x), stride), k.mul(row, conv.columns)), left);
            if (conv.strideWidth == 1)
              k.loopVectors(right - left, [&](Value at, Lanes lanes) {
                Value place = k.add(to, at);
                k.store(k.fadd(k.load(sums, place, lanes), k.load(patches, k.add(from, at), lanes)), sums, place,
                        lanes);
              });
            else
              k.loop(0, right - left, 1, [&](Value at) {
                Value place = k.add(to, k.mul(at, conv.strideWidth));
                k.storeScalar(k.fadd(k.loadScalar(sums, place), k.loadScalar(patches, k.add(from, at))), sums, place);
              });
          });
        }
      });
    });
    if (keepsSums)
      k.loopVectors(size, [&](Value at, Lanes lanes) {
        k.store(k.load(sums, at, lanes), k.buffer(2), k.add(k.mul(image, size), at), lanes);
      });
  });
  return success();
}

/// Sums of products along the pixels for one row of the kernel in one channel: in registers for some outputs × the
/// row's taps.
class WeightGradEmitter {
public:
  WeightGradEmitter(KernelBuilder &k, const Conv &conv) : k(k), conv(conv), channel(k, conv, k.buffer(1)) {
    stride = llvm::alignTo(conv.pixels(), k.lanes);
    imagesPerGroup = std::clamp<int64_t>(patchElements / (conv.kernelWidth * stride), 1, conv.images);
    patches = k.stack(conv.kernelWidth * imagesPerGroup * stride);
    sums = k.stack(conv.outputs * conv.kernelWidth * k.lanes);
    // Sums, the taps' vectors and one of the gradient.
    int64_t most = std::max<int64_t>(1, (k.target.vectorRegisters - 1) / conv.kernelWidth - 1);
    outputsPerBlock = std::min(most, conv.outputs);
    if (int64_t even = largestDivisor(conv.outputs, most); 2 * even > outputsPerBlock)
      outputsPerBlock = even;
  }

  int64_t patchSize() const { return conv.kernelWidth * imagesPerGroup * stride; }

  void emitUnit(Value unit) {
    Value channelNumber = k.div(unit, conv.kernelHeight), y = k.mod(unit, conv.kernelHeight);
    int64_t sumElements = conv.outputs * conv.kernelWidth * k.lanes;
    k.loop(0, sumElements, k.lanes, [&](Value at) { k.store(k.splat(0.0, k.lanes), sums, at, {k.lanes, k.lanes}); });
    k.loop(0, conv.images, imagesPerGroup, [&](Value firstImage) {
      Value endImage = k.min(k.add(firstImage, imagesPerGroup), k.index(conv.images));
      k.loop(firstImage, endImage, 1, [&](Value image) {
        channel.select(k.mul(k.add(k.mul(image, conv.channels), channelNumber), conv.height * conv.width));
        for (int64_t x = 0; x < conv.kernelWidth; ++x)
          channel.copyTap(y, k.index(x), k.index(0), conv.rows, patches, patchOf(k.sub(image, firstImage), x));
      });
      int64_t rest = conv.outputs % outputsPerBlock, full = conv.outputs - rest;
      k.loop(0, full, outputsPerBlock,
             [&](Value output) { emitOutputs(output, outputsPerBlock, firstImage, endImage); });
      if (rest)
        emitOutputs(k.index(full), rest, firstImage, endImage);
    });
    k.loop(0, conv.outputs, 1, [&](Value output) {
      for (int64_t x = 0; x < conv.kernelWidth; ++x) {
        Value sum = k.sumLanes(k.load(sums, sumOf(output, x), {k.lanes, k.lanes}));
        k.storeScalar(sum, k.buffer(2), k.add(k.add(k.mul(output, conv.taps()), k.mul(unit, conv.kernelWidth)), x));
      }
    });
  }

private:
  Value patchOf(Value image, int64_t tap) { return k.add(k.mul(image, conv.kernelWidth * stride), tap * stride); }
  Value sumOf(Value output, int64_t tap) { return k.add(k.mul(output, conv.kernelWidth * k.lanes), tap * k.lanes); }

  void emitOutputs(Value output, int64_t count, Value firstImage, Value endImage) {
    Values carried;
    for (int64_t o = 0; o < count; ++o)
      for (int64_t x = 0; x < conv.kernelWidth; ++x)
        carried.push_back(k.load(sums, k.add(sumOf(output, x), o * conv.kernelWidth * k.lanes), {k.lanes, k.lanes}));
    carried = k.loop(firstImage, endImage, 1, carried, [&](Value image, ValueRange fromImages) {
      Value grad = k.mul(k.add(k.mul(image, conv.outputs), output), conv.pixels()),
            patch = patchOf(k.sub(image, firstImage), 0);
      auto multiply = [&](Value at, ValueRange before, Lanes lanes) {
        Values taps, next;
        for (int64_t x = 0; x < conv.kernelWidth; ++x)
          taps.push_back(k.load(patches, k.add(k.add(patch, at), x * stride), lanes));
        for (int64_t o = 0; o < count; ++o) {
          Value dy = k.load(k.buffer(0), k.add(k.add(grad, at), o * conv.pixels()), lanes);
          for (Value tap : taps)
            next.push_back(k.fma(dy, tap, before[next.size()]));
        }
        return next;
      };
      int64_t rest = conv.pixels() % k.lanes, full = conv.pixels() - rest;
      Values now(fromImages);
      if (full)
        now = k.loop(k.index(0), k.index(full), k.lanes, now,
                     [&](Value at, ValueRange v) { return multiply(at, v, {k.lanes, k.lanes}); });
      return rest ? multiply(k.index(full), now, {k.lanes, rest}) : now;
    });
    for (int64_t o = 0; o < count; ++o)
      for (int64_t x = 0; x < conv.kernelWidth; ++x)
        k.store(carried[o * conv.kernelWidth + x], sums, k.add(sumOf(output, x), o * conv.kernelWidth * k.lanes),
                {k.lanes, k.lanes});
  }

  KernelBuilder &k;
  const Conv &conv;
  PaddedChannel channel;
  int64_t stride, imagesPerGroup, outputsPerBlock;
  Value patches, sums;
};

/// Many channels: grad [outputs, pixels] · patchesᵀ [pixels, taps], added up over images and rows of them. A tile is
/// some outputs × some rows of the kernel in a channel (units).
LogicalResult emitWeightGradByProducts(KernelBuilder &k, Operation *op, const Conv &conv) {
  bool isInPlace = conv.kernelHeight == 1 && conv.kernelWidth == 1 && conv.strideHeight == 1 && conv.strideWidth == 1 &&
                   !conv.isPadded();
  constexpr int64_t mostPixels = 512, fewestTiles = 16, fewestRows = 28;
  int64_t rows = isInPlace ? conv.rows : largestDivisor(conv.rows, mostPixels / conv.columns);
  int64_t pixels = rows * conv.columns, slices = conv.rows / rows, units = conv.channels * conv.kernelHeight;
  int64_t mostTaps = std::max<int64_t>(1, patchElements / std::min(pixels, mostPixels));
  int64_t unitsPerBlock = largestDivisor(units, mostTaps / conv.kernelWidth), taps = unitsPerBlock * conv.kernelWidth;
  int64_t stride = isInPlace ? conv.pixels() : llvm::alignTo(pixels, k.lanes);
  if (!isInPlace && taps * stride > mostPatchElements)
    return tooLarge(op, taps * stride);
  int64_t tapBlocks = units / unitsPerBlock;
  int64_t outputs = largestDivisor(conv.outputs, std::max(fewestRows, conv.outputs * tapBlocks / fewestTiles));
  if (outputs < fewestRows / 2)
    outputs = conv.outputs;

  MatrixRef grad = {k.buffer(0), {}, conv.pixels(), 1}, result = {k.buffer(2), {}, conv.taps(), 1};
  // Sums over images are f32, whatever the result has.
  MatrixRef target = result;
  if (isNarrow(k))
    result = {k.stack(outputs * taps), {}, taps, 1};
  MatrixRef right = {isInPlace ? k.buffer(1) : k.stack(taps * stride), k.index(0), 1, stride};
  GemmBlocking blocking = GemmBlocking::choose(k.target, outputs, taps, pixels, grad, right, 1e6);
  blocking.rowPanelsPerBlock = blocking.rowPanels, blocking.columnPanelsPerBlock = blocking.columnPanels;
  blocking.rowBlocks = blocking.columnBlocks = 1;
  blocking.packsRight = blocking.addsToResult = true;
  blocking.packsLeft |= isNarrow(k);
  PaddedChannel channels(k, conv, k.buffer(1));
  loopWholeRowsOfTile(k, tapBlocks * (conv.outputs / outputs), 1, [&](Value tile) {
    Value firstUnit = k.mul(k.mod(tile, tapBlocks), unitsPerBlock),
          firstOutput = k.mul(k.div(tile, tapBlocks), outputs);
    target.offset = k.add(k.mul(firstOutput, conv.taps()), k.mul(firstUnit, conv.kernelWidth));
    result.offset = isNarrow(k) ? k.index(0) : target.offset;
    auto forEachVector = [&](llvm::function_ref<void(Value output, Value at, Lanes lanes)> body) {
      k.loop(0, outputs, 1,
             [&](Value output) { k.loopVectors(taps, [&](Value at, Lanes lanes) { body(output, at, lanes); }); });
    };
    auto placeIn = [&](const MatrixRef &matrix, Value output, Value at) {
      return k.add(k.add(matrix.offset, k.mul(output, matrix.rowStride)), at);
    };
    forEachVector([&](Value output, Value at, Lanes lanes) {
      k.store(k.splat(0.0, lanes.width), result.buffer, placeIn(result, output, at), lanes);
    });
    k.loop(0, conv.images, 1, [&](Value image) {
      k.loop(0, slices, 1, [&](Value slice) {
        Value firstRow = k.mul(slice, rows), imageStart = k.mul(image, conv.channels);
        if (isInPlace)
          right.offset = k.mul(k.add(imageStart, firstUnit), conv.pixels());
        else
          k.loop(0, unitsPerBlock, 1, [&](Value unit) {
            Value number = k.add(firstUnit, unit), y = k.mod(number, conv.kernelHeight);
            channels.select(k.mul(k.add(imageStart, k.div(number, conv.kernelHeight)), conv.height * conv.width),
                            k.add(k.mul(firstRow, conv.strideHeight), y), (rows - 1) * conv.strideHeight + 1);
            for (int64_t x = 0; x < conv.kernelWidth; ++x)
              channels.copyTap(y, k.index(x), firstRow, rows, right.buffer,
                               k.add(k.mul(unit, conv.kernelWidth * stride), x * stride));
          });
        grad.offset =
            k.add(k.mul(k.add(k.mul(image, conv.outputs), firstOutput), conv.pixels()), k.mul(firstRow, conv.columns));
        emitGemmBlock(k, blocking, grad, right, result, k.index(0), k.index(0));
      });
    });
    if (isNarrow(k))
      forEachVector([&](Value output, Value at, Lanes lanes) {
        k.store(k.load(result.buffer, placeIn(result, output, at), lanes), target.buffer, placeIn(target, output, at),
                lanes);
      });
  });
  return success();
}

LogicalResult emitConvWeightGrad(KernelBuilder &k, ir::Conv2dWeightGradOp convolution) {
  Conv conv(convolution, shapeOf(convolution.getInput()), shapeOf(convolution.getResult()),
            shapeOf(convolution.getGrad()));
  if (conv.outputs * conv.taps() >= fewestWeightsOfProduct && conv.pixels() > 0)
    return emitWeightGradByProducts(k, convolution, conv);
  WeightGradEmitter emitter(k, conv);
  if (emitter.patchSize() > mostPatchElements)
    return tooLarge(convolution, emitter.patchSize());
  double flops = 2.0 * double(conv.images) * double(conv.outputs) * double(conv.kernelWidth) * double(conv.pixels());
  loopWholeRowsOfTile(k, conv.channels * conv.kernelHeight, std::max<int64_t>(1, int64_t(2e6 / flops)),
                      [&](Value unit) { emitter.emitUnit(unit); });
  return success();
}
} // namespace

void addConvolutionKernels(KernelTable &table) {
  table.add(emitConv);
  addBlockedConvKernels(table);
  table.add(emitConvInputGrad);
  table.add(emitConvWeightGrad);
}

} // namespace dg::codegen
