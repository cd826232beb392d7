// SPDX-License-Identifier: Apache-2.0
// Reads and writes at places given by integers. One outside its table is reported (see Places.h).
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/Places.h"
#include "codegen/kernels/KernelTable.h"
#include "ir/ops/arrangement/IndexingOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace dg::codegen {

namespace {
void emitEmbedding(KernelBuilder &k, ir::EmbeddingOp embedding) {
  int64_t tableRows = shapeOf(embedding.getTable())[0], columns = shapeOf(embedding.getTable())[1];
  loopRowsOfTile(
      k, numElements(embedding.getIndices()), columns, elementsPerTile, [&](Value row, Value from, Value to) {
        Value source = k.mul(loadPlace(k, k.buffer(1), row, tableRows), columns), target = k.mul(row, columns);
        k.loopVectors(from, to, columns, [&](Value at, Lanes lanes) {
          k.store(k.load(k.buffer(0), k.add(source, at), lanes), k.buffer(2), k.add(target, at), lanes);
        });
      });
}

/// Each tile owns some columns of the whole table and adds the rows in the order of the indices: the same sums on any
/// grid.
void emitEmbeddingGrad(KernelBuilder &k, ir::EmbeddingGradOp embedding) {
  int64_t tableRows = embedding.getRows(), columns = shapeOf(embedding.getResult()).back(),
          count = numElements(embedding.getIndices());
  int64_t most = std::clamp<int64_t>((tableRows + count) * columns / elementsPerTile, 1, 8);
  int64_t columnsPerTile = llvm::alignTo(llvm::divideCeil(columns, most), 16),
          tiles = llvm::divideCeil(columns, columnsPerTile);
  k.setTiles(tiles);
  Value from = k.mul(k.tile(), columnsPerTile), to = k.min(k.add(from, columnsPerTile), k.index(columns));
  k.loop(0, tableRows, 1, [&](Value row) {
    Value start = k.mul(row, columns);
    k.loopVectors(from, to, columns, [&](Value at, Lanes lanes) {
      k.store(k.splat(0.0, lanes.width), k.buffer(2), k.add(start, at), lanes);
    });
  });
  k.loop(0, count, 1, [&](Value position) {
    Value source = k.mul(position, columns), target = k.mul(loadPlace(k, k.buffer(1), position, tableRows), columns);
    k.loopVectors(from, to, columns, [&](Value at, Lanes lanes) {
      Value place = k.add(target, at);
      k.store(k.fadd(k.load(k.buffer(2), place, lanes), k.load(k.buffer(0), k.add(source, at), lanes)), k.buffer(2),
              place, lanes);
    });
  });
}

void emitPick(KernelBuilder &k, ir::PickOp pick) {
  int64_t classes = shapeOf(pick.getInput()).back();
  loopWholeRowsOfTile(k, numElements(pick.getIndices()), elementsPerTile, [&](Value row) {
    Value place = k.add(k.mul(row, classes), loadPlace(k, k.buffer(1), row, classes));
    k.storeScalar(k.loadScalar(k.buffer(0), place), k.buffer(2), row);
  });
}

void emitPickGrad(KernelBuilder &k, ir::PickGradOp pick) {
  int64_t classes = pick.getClasses();
  loopWholeRowsOfTile(k, numElements(pick.getIndices()), std::max<int64_t>(1, elementsPerTile / classes),
                      [&](Value row) {
                        Value start = k.mul(row, classes);
                        k.loopVectors(classes, [&](Value at, Lanes lanes) {
                          k.store(k.splat(0.0, lanes.width), k.buffer(2), k.add(start, at), lanes);
                        });
                        k.storeScalar(k.loadScalar(k.buffer(0), row), k.buffer(2),
                                      k.add(start, loadPlace(k, k.buffer(1), row, classes)));
                      });
}

void emitPickLogSoftmax(KernelBuilder &k, ir::PickLogSoftmaxOp pick) {
  int64_t classes = shapeOf(pick.getInput()).back();
  loopWholeRowsOfTile(
      k, numElements(pick.getIndices()), std::max<int64_t>(1, elementsPerTile / classes), [&](Value row) {
        Value start = k.mul(row, classes);
        auto element = [&](Value at, Lanes lanes) { return k.load(k.buffer(0), k.add(start, at), lanes); };
        Value largest = k.fold(KernelBuilder::Fold::max, classes, element);
        Value sum = k.fold(KernelBuilder::Fold::sum, classes, [&](Value at, Lanes lanes) {
          return k.exp(k.fsub(element(at, lanes), k.splat(largest, lanes.width)));
        });
        Value logarithm = k.log(sum);
        Value picked = k.loadScalar(k.buffer(0), k.add(start, loadPlace(k, k.buffer(1), row, classes)));
        k.storeScalar(k.fsub(k.fsub(picked, largest), logarithm), k.buffer(2), row);
        k.storeScalar(k.fadd(largest, logarithm), k.buffer(3), row);
      });
}

void emitPickLogSoftmaxGrad(KernelBuilder &k, ir::PickLogSoftmaxGradOp pick) {
  int64_t classes = shapeOf(pick.getInput()).back();
  Value input = k.buffer(2), result = pick.getOverwrites() ? input : k.buffer(5);
  loopWholeRowsOfTile(
      k, numElements(pick.getIndices()), std::max<int64_t>(1, elementsPerTile / classes), [&](Value row) {
        Value start = k.mul(row, classes), logarithm = k.loadScalar(k.buffer(4), row),
              weight = k.loadScalar(k.buffer(1), row);
        k.loopVectors(classes, [&](Value at, Lanes lanes) {
          Value softmax = k.exp(k.fsub(k.load(input, k.add(start, at), lanes), k.splat(logarithm, lanes.width)));
          k.store(k.fmul(softmax, k.splat(weight, lanes.width)), result, k.add(start, at), lanes);
        });
        Value place = k.add(start, loadPlace(k, k.buffer(3), row, classes));
        k.storeScalar(k.fadd(k.loadScalar(result, place), k.loadScalar(k.buffer(0), row)), result, place);
      });
}

/// The index is right where no element is larger, and none before it is equal: counted in one pass.
void emitCorrect(KernelBuilder &k, ir::CorrectOp correct) {
  int64_t classes = shapeOf(correct.getScores()).back();
  loopWholeRowsOfTile(
      k, numElements(correct.getIndices()), std::max<int64_t>(1, elementsPerTile / classes), [&](Value row) {
        Value start = k.mul(row, classes), place = loadPlace(k, k.buffer(1), row, classes);
        Value score = k.loadScalar(k.buffer(0), k.add(start, place));
        Value better = k.fold(KernelBuilder::Fold::sum, classes, [&](Value at, Lanes lanes) {
          Value x = k.load(k.buffer(0), k.add(start, at), lanes), own = k.splat(score, lanes.width);
          SmallVector<int32_t> numbers;
          for (int32_t i = 0; i < lanes.width; ++i)
            numbers.push_back(i);
          Value columns = k.create<arith::ConstantOp>(
              DenseElementsAttr::get(k.vectorOf(lanes.width, k.getI32Type()), ArrayRef<int32_t>(numbers)));
          Value distance = k.splat(Value(k.create<arith::IndexCastOp>(k.getI32Type(), k.sub(place, at))), lanes.width);
          Value isBefore = k.create<arith::CmpIOp>(arith::CmpIPredicate::slt, columns, distance);
          Value isEqual = k.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, x, own);
          Value wins = k.create<arith::OrIOp>(k.greater(x, own), k.create<arith::AndIOp>(isEqual, isBefore));
          return k.select(wins, k.constant(1, x), k.constant(0, x));
        });
        k.storeScalar(k.select(k.greater(better, k.number(0)), k.number(0), k.number(1)), k.buffer(2), row);
      });
}
} // namespace

void addIndexingKernels(KernelTable &table) {
  table.add(emitEmbedding);
  table.add(emitEmbeddingGrad);
  table.add(emitPick);
  table.add(emitPickGrad);
  table.add(emitPickLogSoftmax);
  table.add(emitPickLogSoftmaxGrad).overwritable = 2;
  table.add(emitCorrect);
}

} // namespace dg::codegen
