// SPDX-License-Identifier: Apache-2.0
// Convolutions of images whose channels lie in blocks of 16. A microkernel holds the sums of some pixels × two blocks
// of outputs (one with 32-byte vectors) in registers, over all channels and taps:
//
//   for each block of channels, kernel row, (kernel column, channel):     side by side in input and weight alike
//     pixels × vectors of outputs += input at the pixel's place (one number) · vector of weights
//
// then computes the op's region on them, and stores. Nothing is copied or packed: pixels of a tile lie at fixed
// distances, because padding is part of the input, and weights come packed.
#include "codegen/kernels/windows/BlockedConvKernels.h"

#include "codegen/emit/LoopNest.h"
#include "codegen/kernels/ElementwiseKernels.h"
#include "ir/ops/product/BlockedOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::codegen {

namespace {
using Values = KernelBuilder::Values;
constexpr int64_t blockSize = ir::BlockedConvOp::blockSize;

/// Weights beyond this stay in the cache one group of outputs at a time; below it, all of them do, and an input is read
/// once.
constexpr int64_t residentWeightBytes = 384 * 1024;
/// What a task computes at least, where that leaves enough tasks for several threads.
constexpr double flopsPerTask = 4e6;
constexpr int64_t fewestTasks = 16;

class BlockedConvEmitter {
public:
  BlockedConvEmitter(KernelBuilder &k, ir::BlockedConvOp op) : k(k), op(op) {
    ArrayRef<int64_t> input = shapeOf(op.getInput()), weight = shapeOf(op.getWeight()),
                      sums = op.getSumsType().getShape();
    images = input[0], blocks = input[1], height = input[2], width = input[3];
    perBlock = op.isPlain() ? 1 : blockSize;
    outputBlocks = weight[0], kernelHeight = weight[2], kernelWidth = weight[3];
    rows = sums[2], columns = sums[3];
    strideHeight = op.getStrides()[0], strideWidth = op.getStrides()[1];
    frameHeight = op.getFrame()[0], frameWidth = op.getFrame()[1];
    for (Value extra : op.getExtras())
      extraStrides.push_back(broadcastStrides(shapeOf(extra), sums));
    if (canFlatten())
      width *= height, columns *= rows, height = rows = 1;

    vectorsPerBlock = std::max<int64_t>(1, blockSize / k.lanes);
    blocksPerGroup = std::clamp<int64_t>(2 / vectorsPerBlock, 1, outputBlocks);
    numGroups = llvm::divideCeil(outputBlocks, blocksPerGroup);
    // Sums, the vectors of weights, and one number of the input.
    int64_t vectors = vectorsPerBlock * blocksPerGroup;
    int64_t mostPixels = std::max<int64_t>(1, (k.target.vectorRegisters - 1 - vectors) / vectors);
    rowsPerTile = std::clamp<int64_t>(mostPixels / columns, 1, rows);
    rowTiles = llvm::divideCeil(rows, rowsPerTile);
    columnTiles = llvm::divideCeil(columns, mostPixels);
    columnsPerTile = llvm::divideCeil(columns, columnTiles);
    // All other tiles have one column less.
    numWideTiles = columns - (columnsPerTile - 1) * columnTiles;
  }

  LogicalResult emit() {
    if (images == 0)
      return success();
    int64_t pixelTiles = rowTiles * columnTiles, perOutput = blocks * kernelHeight * kernelWidth * perBlock;
    bool isByGroup = outputBlocks * blockSize * perOutput * k.target.realBytes > residentWeightBytes;
    int64_t groupsPerTask = isByGroup ? 1 : numGroups, groupParts = llvm::divideCeil(numGroups, groupsPerTask);
    double flops = 2.0 * double(perOutput * groupsPerTask * blocksPerGroup * blockSize * rows * columns);
    int64_t most = std::max<int64_t>(llvm::divideCeil(fewestTasks, images * groupParts), int64_t(flops / flopsPerTask));
    int64_t tilesPerTask = llvm::divideCeil(pixelTiles, std::clamp<int64_t>(most, 1, pixelTiles));
    int64_t pixelParts = llvm::divideCeil(pixelTiles, tilesPerTask);
    k.setTiles(images * groupParts * pixelParts);

    Value pixelPart = k.mod(k.tile(), pixelParts), rest = k.div(k.tile(), pixelParts);
    Value groupPart = k.mod(rest, groupParts);
    image = k.div(rest, groupParts);
    Value firstGroup = k.mul(groupPart, groupsPerTask), firstTile = k.mul(pixelPart, tilesPerTask);
    Value endGroup = k.min(k.add(firstGroup, groupsPerTask), k.index(numGroups));
    Value endTile = k.min(k.add(firstTile, tilesPerTask), k.index(pixelTiles));
    if (frameHeight || frameWidth)
      k.ifThen(k.isEqual(pixelPart, k.index(0)), [&] { emitFrame(firstGroup, endGroup); });
    if (isByGroup)
      k.loop(firstGroup, endGroup, 1,
             [&](Value group) { k.loop(firstTile, endTile, 1, [&](Value tile) { emitPixelTile(group, tile); }); });
    else
      k.loop(firstTile, endTile, 1,
             [&](Value tile) { k.loop(firstGroup, endGroup, 1, [&](Value group) { emitPixelTile(group, tile); }); });
    return outcome;
  }

private:
  /// Pixels that are read one by one in order are one long row, unless an extra operand is repeated in another way.
  bool canFlatten() const {
    return kernelHeight == 1 && kernelWidth == 1 && strideHeight == 1 && strideWidth == 1 && !frameHeight &&
           !frameWidth &&
           llvm::all_of(extraStrides, [&](ArrayRef<int64_t> strides) { return strides[2] == strides[3] * columns; });
  }

  /// Picks the code for the size of the tile.
  void emitPixelTile(Value group, Value tile) {
    Value rowTile = k.div(tile, columnTiles), columnTile = k.mod(tile, columnTiles);
    auto eitherOf = [&](bool hasSecond, Value isFirst, llvm::function_ref<void()> first,
                        llvm::function_ref<void()> second) {
      if (!hasSecond)
        return first();
      k.ifElse(isFirst, {}, [&] { return first(), Values(); }, [&] { return second(), Values(); });
    };
    int64_t lastBlocks = outputBlocks - (numGroups - 1) * blocksPerGroup,
            lastRows = rows - (rowTiles - 1) * rowsPerTile;
    auto emitFor = [&](int64_t numBlocks, int64_t numRows) {
      Value row = k.mul(rowTile, rowsPerTile);
      eitherOf(
          numWideTiles < columnTiles, k.isLess(columnTile, k.index(numWideTiles)),
          [&] { emitMicrokernel(group, numBlocks, row, numRows, k.mul(columnTile, columnsPerTile), columnsPerTile); },
          [&] {
            Value column = k.add(k.mul(columnTile, columnsPerTile - 1), numWideTiles);
            emitMicrokernel(group, numBlocks, row, numRows, column, columnsPerTile - 1);
          });
    };
    auto emitForBlocks = [&](int64_t numBlocks) {
      eitherOf(
          lastRows < rowsPerTile, k.isLess(rowTile, k.index(rowTiles - 1)), [&] { emitFor(numBlocks, rowsPerTile); },
          [&] { emitFor(numBlocks, lastRows); });
    };
    eitherOf(
        lastBlocks < blocksPerGroup, k.isLess(group, k.index(numGroups - 1)), [&] { emitForBlocks(blocksPerGroup); },
        [&] { emitForBlocks(lastBlocks); });
  }

  void emitMicrokernel(Value group, int64_t numBlocks, Value row, int64_t numRows, Value column, int64_t numColumns) {
    int64_t perLine = kernelWidth * perBlock, perOutput = blocks * kernelHeight * perLine;
    int64_t lineSize = width * perBlock, vectors = numBlocks * vectorsPerBlock;
    Value firstBlock = k.mul(group, blocksPerGroup);
    Value weights = k.mul(firstBlock, perOutput * blockSize);
    Value from = k.add(k.mul(k.add(k.mul(image, blocks * height), k.mul(row, strideHeight)), lineSize),
                       k.mul(column, strideWidth * perBlock));
    Values sums(numRows * numColumns * vectors, k.splat(0.0, vectorWidth()));
    sums = k.loop(k.index(0), k.index(blocks), 1, sums, [&](Value block, ValueRange carried) {
      return k.loop(k.index(0), k.index(kernelHeight), 1, carried, [&](Value y, ValueRange carried) {
        Value line = k.add(from, k.mul(k.add(k.mul(block, height), y), lineSize));
        Value taps = k.add(weights, k.mul(k.add(k.mul(block, kernelHeight), y), perLine * blockSize));
        return k.loop(k.index(0), k.index(perLine), 1, carried, [&](Value tap, ValueRange carried) {
          Values weight, next;
          Value at = k.add(taps, k.mul(tap, blockSize));
          for (int64_t v = 0; v < vectors; ++v)
            weight.push_back(
                k.load(k.buffer(1),
                       k.add(at, v / vectorsPerBlock * perOutput * blockSize + v % vectorsPerBlock * vectorWidth()),
                       {vectorWidth(), vectorWidth()}));
          for (int64_t i = 0; i < numRows; ++i)
            for (int64_t j = 0; j < numColumns; ++j) {
              Value place = k.add(k.add(line, tap), i * strideHeight * lineSize + j * strideWidth * perBlock);
              Value number = k.splat(k.loadScalar(k.buffer(0), place), vectorWidth());
              for (Value vector : weight)
                next.push_back(k.fma(number, vector, carried[next.size()]));
            }
          return next;
        });
      });
    });
    size_t number = 0;
    for (int64_t i = 0; i < numRows; ++i)
      for (int64_t j = 0; j < numColumns; ++j)
        for (int64_t v = 0; v < vectors; ++v)
          emitElements(sums[number++], k.add(firstBlock, v / vectorsPerBlock), k.add(row, i), k.add(column, j),
                       v % vectorsPerBlock * vectorWidth());
  }

  /// The op's region on one vector of sums, and its store.
  void emitElements(Value sum, Value block, Value row, Value column, int64_t lane) {
    Values operands(1, sum);
    for (auto [index, strides] : llvm::enumerate(extraStrides)) {
      Value at = k.add(placeOf(k, {image, block, row, column}, ArrayRef(strides).drop_back()), lane * strides[4]);
      Value buffer = k.buffer(2 + index);
      Lanes lanes = {vectorWidth(), vectorWidth()};
      operands.push_back(strides[4] ? k.load(buffer, at, lanes) : k.loadSplat(buffer, at, lanes));
    }
    FailureOr<SmallVector<Value>> elements = emitElementBody(k, op, operands);
    if (failed(elements)) {
      outcome = failure();
      return;
    }
    Value line = k.add(k.mul(imageOf(block), rows + 2 * frameHeight), k.add(row, frameHeight));
    Value pixel = k.add(k.mul(line, columns + 2 * frameWidth), k.add(column, frameWidth));
    k.store(elements->front(), resultBuffer(), k.add(k.mul(pixel, blockSize), lane), {vectorWidth(), vectorWidth()});
  }

  /// Zeros around the images of some groups.
  void emitFrame(Value firstGroup, Value endGroup) {
    int64_t framedWidth = columns + 2 * frameWidth, framedHeight = rows + 2 * frameHeight;
    auto clear = [&](Value pixel, int64_t count) {
      Value start = k.mul(pixel, blockSize);
      k.loopVectors(count * blockSize, [&](Value at, Lanes lanes) {
        k.store(k.splat(0.0, lanes.width), resultBuffer(), k.add(start, at), lanes);
      });
    };
    Value endBlock = k.min(k.mul(endGroup, blocksPerGroup), k.index(outputBlocks));
    k.loop(k.mul(firstGroup, blocksPerGroup), endBlock, 1, [&](Value block) {
      Value start = k.mul(imageOf(block), framedHeight * framedWidth);
      clear(start, frameHeight * framedWidth);
      k.loop(frameHeight, frameHeight + rows, 1, [&](Value row) {
        Value line = k.add(start, k.mul(row, framedWidth));
        clear(line, frameWidth);
        clear(k.add(line, frameWidth + columns), frameWidth);
      });
      clear(k.add(start, (frameHeight + rows) * framedWidth), frameHeight * framedWidth);
    });
  }

  int64_t vectorWidth() const { return std::min(blockSize, k.lanes); }
  Value resultBuffer() { return k.buffer(2 + extraStrides.size()); }
  Value imageOf(Value block) { return k.add(k.mul(image, outputBlocks), block); }

  KernelBuilder &k;
  ir::BlockedConvOp op;
  int64_t images, blocks, height, width, perBlock; ///< of the input; blocks of `perBlock` channels
  int64_t outputBlocks, rows, columns;             ///< of the sums
  int64_t kernelHeight, kernelWidth, strideHeight, strideWidth, frameHeight, frameWidth;
  SmallVector<SmallVector<int64_t>> extraStrides; ///< in loops over the sums
  int64_t vectorsPerBlock, blocksPerGroup, numGroups;
  int64_t rowsPerTile, rowTiles, columnsPerTile, columnTiles, numWideTiles;
  Value image;
  LogicalResult outcome = success();
};

LogicalResult emitBlockedConv(KernelBuilder &k, ir::BlockedConvOp op) { return BlockedConvEmitter(k, op).emit(); }
} // namespace

void addBlockedConvKernels(KernelTable &table) { table.add(emitBlockedConv); }

} // namespace dg::codegen
