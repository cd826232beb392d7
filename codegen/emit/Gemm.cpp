// SPDX-License-Identifier: Apache-2.0
// The blocked matrix product: choice of blocks, packing, microkernel.
#include "codegen/emit/Gemm.h"

#include "codegen/emit/GemmFactors.h"
#include "codegen/emit/GemmTiles.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace mlir;

namespace dg::codegen {

GemmBlocking GemmBlocking::choose(const Target &target, int64_t m, int64_t n, int64_t k, const MatrixRef &left,
                                  const MatrixRef &right, double blockFlops) {
  GemmBlocking b;
  b.m = m, b.n = n, b.k = k;
  int64_t lanes = target.lanes(), vectors = n > lanes ? 2 : 1;
  // Sums, the vectors of one row of b, and one element of a: 14×2+3 of 32 registers, 6×2+3 of 16.
  int64_t mostRows = std::min<int64_t>(14, (target.vectorRegisters - vectors - 1) / vectors);
  b.panelColumns = vectors * lanes;
  b.columnPanels = llvm::divideCeil(n, b.panelColumns);
  b.rowPanels = llvm::divideCeil(m, mostRows);
  b.panelRows = llvm::divideCeil(m, b.rowPanels);
  b.shortRows = b.panelRows - 1;
  b.numTallPanels = m - b.shortRows * b.rowPanels;
  bool turnsLeft = left.columnStride != 1;
  int64_t elementBytes = target.vectorBytes / lanes;
  // Rows that are a multiple of 4 KiB apart fall on the same few lines of the first-level cache.
  bool conflicts = !turnsLeft && left.rowStride * elementBytes % 4096 == 0 && k > 64;
  // A panel of rows of one slice stays in the first-level cache (14 · 512 · 4 bytes = 28 KiB), the packed columns in
  // the second; and with them, where whole blocks of rows are packed, those.
  const int64_t mostDepth = turnsLeft ? 192 : conflicts ? 384 : 512;
  b.depth = k <= mostDepth ? k : llvm::alignTo(llvm::divideCeil(k, llvm::divideCeil(k, mostDepth)), lanes);

  // Packing the columns is paid by the rows of a block, packing the rows by its columns. Rows that are read in place
  // cost nothing, so that a block has many of them.
  const int64_t mostPackedElements = 384 * 1024 / elementBytes;
  b.rowBlocks = llvm::divideCeil(m, turnsLeft ? 192 : conflicts ? 256 : 1024);
  int64_t fewestColumnPanels = std::clamp<int64_t>(b.columnPanels * b.rowBlocks / (turnsLeft || conflicts ? 8 : 16), 1,
                                                   turnsLeft   ? 12
                                                   : conflicts ? 6
                                                               : 4);
  b.rowPanelsPerBlock = llvm::divideCeil(b.rowPanels, b.rowBlocks);
  b.rowBlocks = llvm::divideCeil(b.rowPanels, b.rowPanelsPerBlock);
  double panelFlops = 2.0 * double(std::min(m, b.rowPanelsPerBlock * b.panelRows)) * double(b.panelColumns) * double(k);
  int64_t most = std::max<int64_t>(1, mostPackedElements / (b.panelColumns * b.depth));
  b.columnPanelsPerBlock = std::max<int64_t>(std::llround(blockFlops / panelFlops), fewestColumnPanels);
  b.columnPanelsPerBlock = std::clamp<int64_t>(b.columnPanelsPerBlock, 1, std::min(most, b.columnPanels));
  b.columnBlocks = llvm::divideCeil(b.columnPanels, b.columnPanelsPerBlock);
  b.columnPanelsPerBlock = llvm::divideCeil(b.columnPanels, b.columnBlocks);
  b.columnBlocks = llvm::divideCeil(b.columnPanels, b.columnPanelsPerBlock);

  constexpr int64_t smallElements = 8 * 1024; // stays in the first-level cache as it is
  b.packsRight = right.columnStride != 1 || (k * n > smallElements && b.rowPanelsPerBlock > 1);
  b.packsLeft = turnsLeft ? k * m > smallElements : conflicts && b.columnPanelsPerBlock > 1;
  return b;
}

/// A tile instruction adds sixteen times as many products as one of vectors in the same time: it gains also where half
/// of its rows, columns and depth are padding.
static bool fillsTiles(int64_t m, int64_t n, int64_t pairs) {
  auto padded = [](int64_t size) { return int64_t(llvm::alignTo(size, tileRows)); };
  return padded(m) * padded(n) * padded(pairs) <= 8 * m * n * pairs;
}

void GemmBlocking::cutIntoTiles() {
  usesTiles = true;
  // Two by two tiles of sums, two of each factor: all eight registers. Only the last panel lacks rows.
  int64_t rowsPerBlock = rowPanelsPerBlock * panelRows;
  panelRows = m > tileRows ? 2 * tileRows : tileRows;
  rowPanels = llvm::divideCeil(m, panelRows);
  numTallPanels = m / panelRows;
  shortRows = m % panelRows;
  rowPanelsPerBlock = std::clamp<int64_t>(llvm::divideCeil(rowsPerBlock, panelRows), 1, rowPanels);
  rowBlocks = llvm::divideCeil(rowPanels, rowPanelsPerBlock);
  // In place tiles are whole.
  packsLeft = packsLeft || m % tileRows != 0 || k % tileRows != 0;
}

GemmBlocking GemmBlocking::chooseHalves(const Target &target, int64_t m, int64_t n, int64_t k, const MatrixRef &left,
                                        const MatrixRef &right, double blockFlops, Type factors, Type result) {
  // A pair has the bytes of one f32: blocks are cut as for half the depth. An odd depth has no last pair.
  bool isPaired = factors.isBF16() && target.multipliesPairs() && k % 2 == 0;
  int64_t steps = isPaired ? k / 2 : k;
  GemmBlocking b = choose(target, m, n, steps, left, right, isPaired ? blockFlops / 2 : blockFlops);
  b.factors = factors;
  b.isPaired = isPaired;
  b.packsRight = true;
  // Pairs of a row lie side by side as they are; other rows are rounded, widened or joined to pairs once for a block.
  bool isRounded = cast<MemRefType>(left.buffer.getType()).getElementType().isF32();
  b.packsLeft = !isPaired || isRounded || left.columnStride != 1 || b.packsLeft;
  if (isPaired && target.multipliesTiles() && fillsTiles(m, n, steps))
    b.cutIntoTiles();
  b.keepsSums = b.depth < b.k && result != Float32Type::get(result.getContext());
  if (b.keepsSums) {
    constexpr int64_t mostRows = 256;
    b.rowPanelsPerBlock = std::min(b.rowPanelsPerBlock, std::max<int64_t>(1, mostRows / b.panelRows));
    b.rowBlocks = llvm::divideCeil(b.rowPanels, b.rowPanelsPerBlock);
  }
  return b;
}

GemmBlocking GemmBlocking::whole(const Target &target, int64_t m, int64_t n, int64_t k, const MatrixRef &left,
                                 const MatrixRef &right) {
  GemmBlocking b = choose(target, m, n, k, left, right, 1e6);
  b.rowPanelsPerBlock = b.rowPanels, b.columnPanelsPerBlock = b.columnPanels;
  b.rowBlocks = b.columnBlocks = 1;
  b.packsRight = false;
  b.packsLeft = false;
  return b;
}

namespace {
/// One block's emission: what all its parts need.
class BlockEmitter {
public:
  BlockEmitter(KernelBuilder &k, const GemmBlocking &blocking, MatrixRef left, MatrixRef right, MatrixRef result)
      : k(k), blocking(blocking), left(left), right(right), result(result),
        reader(k, blocking.factors, blocking.isPaired), perStep(reader.perStep()) {
    Type packed = reader.packedType();
    if (blocking.packsRight)
      packedRight = k.stack(blocking.columnPanelsPerBlock * packedDepth() * blocking.panelColumns, packed);
    sumStride = blocking.columnPanelsPerBlock * blocking.panelColumns;
    if (blocking.keepsSums)
      keptSums = k.stack(blocking.rowPanelsPerBlock * blocking.panelRows * sumStride);
    leftStride = packsTurnedRows() ? blocking.panelRows : llvm::alignTo(blocking.depth, k.lanes) + k.lanes;
    if (blocking.packsLeft)
      packedLeft = k.stack(
          packsTurnedRows() ? blocking.rowPanelsPerBlock * packedRowsSize() : blocking.panelRows * leftStride, packed);
    if (blocking.usesTiles)
      tileSums = k.stack(blocking.panelRows * blocking.panelColumns);
  }

  void emit(Value rowBlock, Value columnBlock) {
    firstRowPanel = k.mul(rowBlock, blocking.rowPanelsPerBlock);
    firstBlockRow = firstRowOf(firstRowPanel);
    endRowPanel = end(firstRowPanel, blocking.rowPanelsPerBlock, blocking.rowPanels);
    firstColumnPanel = k.mul(columnBlock, blocking.columnPanelsPerBlock);
    endColumnPanel = end(firstColumnPanel, blocking.columnPanelsPerBlock, blocking.columnPanels);
    if (blocking.depth == blocking.k)
      return emitSlice(k.index(0), k.index(blocking.k));
    k.loop(0, blocking.k, blocking.depth,
           [&](Value from) { emitSlice(from, k.min(k.index(blocking.depth), k.sub(k.index(blocking.k), from))); });
  }

private:
  /// a is stored with its columns as rows.
  bool isLeftTurned() const { return left.columnStride != 1; }
  /// And is packed as it lies, one depth after the other. Tiles want the depth side by side.
  bool packsTurnedRows() const { return isLeftTurned() && !blocking.usesTiles; }
  /// Steps of a packed panel of columns.
  int64_t packedDepth() const {
    return blocking.usesTiles ? int64_t(llvm::alignTo(blocking.depth, tileRows)) : blocking.depth;
  }

  /// Tall panels come first.
  Value firstRowOf(Value panel) {
    return k.add(k.mul(panel, blocking.shortRows),
                 k.mul(k.min(panel, k.index(blocking.numTallPanels)), blocking.panelRows - blocking.shortRows));
  }

  Value end(Value first, int64_t count, int64_t total) {
    return total % count ? k.min(k.add(first, count), k.index(total)) : k.add(first, count);
  }

  /// The vectors that make up a panel with this many columns.
  SmallVector<Lanes> vectorsOf(int64_t columns) {
    SmallVector<Lanes> vectors;
    for (; columns > 0; columns -= k.lanes)
      vectors.push_back(
          columns >= k.lanes
              ? Lanes{k.lanes, k.lanes}
              : Lanes{std::max(int64_t(llvm::bit_ceil(uint64_t(columns))), reader.fewestLanes()), columns});
    return vectors;
  }

  /// Calls the body for each panel of columns of the block, with the columns it has.
  void loopColumnPanels(llvm::function_ref<void(Value panel, int64_t columns)> body) {
    int64_t rest = blocking.n % blocking.panelColumns, full = blocking.columnPanels - (rest ? 1 : 0);
    if (full > 0)
      k.loop(firstColumnPanel, rest ? k.min(endColumnPanel, k.index(full)) : endColumnPanel, 1,
             [&](Value panel) { body(panel, blocking.panelColumns); });
    if (rest == 0)
      return;
    if (blocking.columnBlocks == 1)
      body(k.index(full), rest);
    else
      k.ifThen(k.isEqual(endColumnPanel, k.index(blocking.columnPanels)), [&] { body(k.index(full), rest); });
  }

  /// One slice of k: pack the columns, then every panel of rows against every panel of columns.
  void emitSlice(Value from, Value length) {
    sliceFrom = from, sliceLength = length;
    if (blocking.packsRight)
      loopColumnPanels([&](Value panel, int64_t columns) {
        if (right.columnStride == 1)
          packColumns(panel, columns);
        else
          packTransposed(panel, columns);
      });
    if (blocking.packsLeft && packsTurnedRows())
      packTurnedRows();
    loopRowPanels([&](Value panel, Value firstRow, int64_t rows) { emitRowPanel(panel, firstRow, rows); });
  }

  /// Calls the body for each panel of rows of the block, with its first row and the rows it has.
  void loopRowPanels(llvm::function_ref<void(Value panel, Value firstRow, int64_t rows)> body) {
    Value tall = k.index(blocking.numTallPanels);
    bool allTall = blocking.numTallPanels == blocking.rowPanels;
    if (blocking.numTallPanels > 0)
      k.loop(firstRowPanel, allTall ? endRowPanel : k.min(endRowPanel, tall), 1,
             [&](Value panel) { body(panel, k.mul(panel, blocking.panelRows), blocking.panelRows); });
    if (!allTall)
      k.loop(k.max(firstRowPanel, tall), endRowPanel, 1,
             [&](Value panel) { body(panel, firstRowOf(panel), blocking.shortRows); });
  }

  Value packedPanel(Value panel) {
    return k.mul(k.sub(panel, firstColumnPanel), packedDepth() * blocking.panelColumns);
  }

  void packColumns(Value panel, int64_t columns) {
    Value to = packedPanel(panel);
    Value source =
        k.add(k.add(right.offset, k.mul(sliceFrom, perStep * right.rowStride)), k.mul(panel, blocking.panelColumns));
    SmallVector<Lanes> vectors = vectorsOf(columns);
    k.loop(k.index(0), sliceLength, 1, [&](Value row) {
      Value at = k.add(source, k.mul(row, perStep * right.rowStride)),
            packed = k.add(to, k.mul(row, blocking.panelColumns));
      for (auto [i, lanes] : llvm::enumerate(vectors))
        reader.storePacked(reader.across(right.buffer, k.add(at, int64_t(i) * k.lanes), right.rowStride, lanes),
                           packedRight, k.add(packed, int64_t(i) * k.lanes));
    });
    if (!blocking.usesTiles || blocking.k % tileRows == 0)
      return;
    // The last tile of the depth is filled up with zeros.
    Value end = k.mul(k.div(k.add(sliceLength, tileRows - 1), tileRows), tileRows);
    k.loop(sliceLength, end, 1, [&](Value row) {
      for (int64_t i = 0; i < int64_t(vectors.size()); ++i)
        reader.storePacked(reader.zeros(k.lanes), packedRight,
                           k.add(k.add(to, k.mul(row, blocking.panelColumns)), i * k.lanes));
    });
  }

  /// b is stored with its columns as rows: squares of them are turned in registers.
  void packTransposed(Value panel, int64_t columns) {
    Value to = packedPanel(panel);
    Value source = k.add(k.add(right.offset, k.mul(sliceFrom, perStep)),
                         k.mul(k.mul(panel, blocking.panelColumns), right.columnStride));
    auto turn = [&](Value row, int64_t numRows) {
      for (int64_t first = 0; first < columns; first += k.lanes) {
        SmallVector<Value> square;
        for (int64_t i = 0; i < k.lanes; ++i)
          square.push_back(first + i < columns ? reader.along(right.buffer,
                                                              k.add(k.add(source, k.mul(row, perStep)),
                                                                    (first + i) * right.columnStride),
                                                              {k.lanes, numRows})
                                               : reader.zeros(k.lanes));
        square = transposeSquare(k, square);
        Value packed = k.add(k.add(to, k.mul(row, blocking.panelColumns)), first);
        for (int64_t i = 0; i < (blocking.usesTiles ? tileRows : numRows); ++i)
          reader.storePacked(square[i], packedRight, k.add(packed, i * blocking.panelColumns));
      }
    };
    int64_t rest = blocking.k % k.lanes;
    Value full = rest ? k.mul(k.div(sliceLength, k.lanes), k.lanes) : sliceLength;
    if (blocking.k >= k.lanes)
      k.loop(k.index(0), full, k.lanes, [&](Value row) { turn(row, k.lanes); });
    if (rest == 0)
      return;
    // Only the last slice has a length that is not a multiple of the lanes.
    if (blocking.depth == blocking.k)
      turn(full, rest);
    else
      k.ifThen(k.isLess(full, sliceLength), [&] { turn(full, rest); });
  }

  /// Rows side by side, a vector after the other: rows a power of two apart do not push each other out of the cache.
  void packRows(Value firstRow, int64_t rows) {
    Value source = k.add(k.add(left.offset, k.mul(firstRow, left.rowStride)), k.mul(sliceFrom, perStep));
    int64_t rest = blocking.k % k.lanes;
    auto copy = [&](Value at, Lanes lanes) {
      for (int64_t row = 0; row < rows; ++row)
        reader.storePacked(
            reader.along(left.buffer, k.add(k.add(source, k.mul(at, perStep)), row * left.rowStride), lanes),
            packedLeft, k.add(at, row * leftStride));
    };
    Value full = rest ? k.mul(k.div(sliceLength, k.lanes), k.lanes) : sliceLength;
    k.loop(k.index(0), full, k.lanes, [&](Value at) { copy(at, {k.lanes, k.lanes}); });
    if (rest)
      k.ifThen(k.isLess(full, sliceLength), [&] { copy(full, {k.lanes, rest}); });
  }

  /// Rows of a left factor that is stored with its columns as rows, as packRows leaves them: squares are turned.
  void packRowsTransposed(Value firstRow, int64_t rows) {
    Value source = k.add(k.add(left.offset, firstRow), k.mul(sliceFrom, perStep * left.columnStride));
    auto turn = [&](Value at, int64_t steps) {
      for (int64_t first = 0; first < rows; first += k.lanes) {
        SmallVector<Value> square;
        for (int64_t i = 0; i < k.lanes; ++i)
          square.push_back(
              i < steps ? reader.across(left.buffer,
                                        k.add(k.add(source, k.mul(k.add(at, i), perStep * left.columnStride)), first),
                                        left.columnStride, {k.lanes, std::min(k.lanes, rows - first)})
                        : reader.zeros(k.lanes));
        square = transposeSquare(k, square);
        for (int64_t i = 0; i < std::min(k.lanes, rows - first); ++i)
          reader.storePacked(square[i], packedLeft, k.add(at, (first + i) * leftStride));
      }
    };
    int64_t rest = blocking.k % k.lanes;
    Value full = rest ? k.mul(k.div(sliceLength, k.lanes), k.lanes) : sliceLength;
    k.loop(k.index(0), full, k.lanes, [&](Value at) { turn(at, k.lanes); });
    if (rest)
      k.ifThen(k.isLess(full, sliceLength), [&] { turn(full, rest); });
  }

  /// All rows of the block at one depth lie together: they are read once, in order, and go to their panels.
  void packTurnedRows() {
    Value source = k.add(left.offset, k.mul(sliceFrom, perStep * left.columnStride));
    k.loop(k.index(0), sliceLength, 1, [&](Value depth) {
      Value at = k.add(source, k.mul(depth, perStep * left.columnStride)), packed = k.mul(depth, leftStride);
      loopRowPanels([&](Value panel, Value firstRow, int64_t rows) {
        for (int64_t first = 0; first < rows; first += k.lanes) {
          Lanes lanes = {k.lanes, std::min(k.lanes, rows - first)};
          reader.storePacked(reader.across(left.buffer, k.add(k.add(at, firstRow), first), left.columnStride, lanes),
                             packedLeft, k.add(k.add(packedRows(panel), packed), first));
        }
      });
    });
  }
  /// Whole vectors are stored over the start of what follows, which is written after them; the last one needs room.
  int64_t packedRowsSize() const { return blocking.depth * leftStride + k.lanes; }
  Value packedRows(Value panel) { return k.mul(k.sub(panel, firstRowPanel), packedRowsSize()); }

  void emitRowPanel(Value rowPanel, Value firstRow, int64_t rows) {
    MatrixRef source;
    if (blocking.packsLeft && packsTurnedRows()) {
      source = {packedLeft, packedRows(rowPanel), 1, leftStride};
    } else if (blocking.packsLeft) {
      if (isLeftTurned())
        packRowsTransposed(firstRow, rows);
      else
        packRows(firstRow, rows);
      source = {packedLeft, k.index(0), leftStride, 1};
    } else {
      Value offset =
          k.add(k.add(left.offset, k.mul(firstRow, left.rowStride)), k.mul(sliceFrom, perStep * left.columnStride));
      source = {left.buffer, offset, left.rowStride, perStep * left.columnStride};
    }
    loopColumnPanels([&](Value panel, int64_t columns) {
      MatrixRef columnsRef;
      if (blocking.packsRight)
        columnsRef = {packedRight, packedPanel(panel), blocking.panelColumns, 1};
      else
        columnsRef = {
            right.buffer,
            k.add(k.add(right.offset, k.mul(panel, blocking.panelColumns)), k.mul(sliceFrom, right.rowStride)),
            right.rowStride, 1};
      emitMicrokernel(source, columnsRef, firstRow, rows, panel, vectorsOf(columns));
    });
  }

  /// Asks, while the sums at one depth are computed, for a line of what is packed next: with rows in place the next
  /// panel of rows, else the next slice. Packing comes in bursts that would wait for memory. A place after the end is
  /// not read.
  void prefetchNext(Value depth, Value firstRow, int64_t rows, Value panel) {
    const int64_t lineElements = 16 * perStep;
    Value nextSlice = k.mul(k.add(sliceFrom, sliceLength), perStep), from = k.mul(sliceFrom, perStep);
    depth = k.mul(depth, perStep);
    if (blocking.packsLeft && isLeftTurned()) {
      // At each depth the rows of a panel are in one line or two; columns take them in turn.
      Value at = k.add(left.offset, k.mul(k.add(nextSlice, depth), left.columnStride));
      k.prefetch(left.buffer, k.add(k.add(at, firstRow), k.mul(k.mod(panel, 2), rows - 1)));
    } else if (blocking.packsLeft) {
      Value row = k.add(k.add(firstRow, rows), k.mod(depth, lineElements));
      Value at = k.add(k.add(left.offset, k.mul(row, left.rowStride)), from);
      k.prefetch(left.buffer, k.add(at, k.mul(k.div(depth, lineElements), lineElements)));
    }
    if (!blocking.packsRight || blocking.depth == blocking.k)
      return;
    // A panel of columns has two lines at each depth; rows take them in turn.
    Value first = k.mul(k.mul(panel, blocking.panelColumns), right.columnStride), odd = k.mod(firstRow, 2);
    Value at = k.add(k.add(right.offset, k.mul(nextSlice, right.rowStride)), first);
    if (right.columnStride == 1) {
      at = k.add(k.add(at, k.mul(depth, right.rowStride)), k.mul(odd, k.lanes));
    } else {
      int64_t columns = blocking.panelColumns;
      Value line = k.mul(k.div(depth, columns), lineElements);
      at = k.add(k.add(at, k.mul(k.mod(depth, columns), right.columnStride)),
                 k.add(line, k.mul(odd, perStep * blocking.depth / 2)));
    }
    k.prefetch(right.buffer, at);
  }

  /// Takes one vector of sums, its row in the panel and its number in the row.
  using SumBody = llvm::function_ref<void(Value sum, Value row, size_t vector)>;

  /// Sums of rows × vectors over the slice, and where they go.
  void emitMicrokernel(const MatrixRef &a, const MatrixRef &b, Value firstRow, int64_t rows, Value panel,
                       ArrayRef<Lanes> vectors) {
    if (blocking.usesTiles) {
      // Rows and columns that do not exist are computed of what lies there, and nobody reads them.
      multiplyTiles(k, {a.buffer, a.offset, a.rowStride}, {b.buffer, b.offset, b.rowStride},
                    {tileSums, k.index(0), blocking.panelColumns}, llvm::divideCeil(rows, tileRows),
                    int64_t(vectors.size()), sliceLength);
      return finishSums(firstRow, panel, vectors, [&](SumBody body) {
        k.loop(0, rows, 1, [&](Value row) {
          for (auto [i, lanes] : llvm::enumerate(vectors))
            body(k.load(tileSums, k.add(k.mul(row, blocking.panelColumns), int64_t(i) * k.lanes),
                        {lanes.width, lanes.width}),
                 row, i);
        });
      });
    }
    KernelBuilder::Values sums = sumsInRegisters(a, b, firstRow, rows, panel, vectors);
    finishSums(firstRow, panel, vectors, [&](SumBody body) {
      for (auto [number, sum] : llvm::enumerate(sums))
        body(sum, k.index(int64_t(number / vectors.size())), number % vectors.size());
    });
  }

  KernelBuilder::Values sumsInRegisters(const MatrixRef &a, const MatrixRef &b, Value firstRow, int64_t rows,
                                        Value panel, ArrayRef<Lanes> vectors) {
    KernelBuilder::Values zeros;
    for (int64_t row = 0; row < rows; ++row)
      for (Lanes lanes : vectors)
        zeros.push_back(k.splat(0.0, lanes.width));
    return k.loop(k.index(0), sliceLength, 1, zeros, [&](Value depth, ValueRange carried) {
      KernelBuilder::Values next, row;
      Value at = k.add(b.offset, k.mul(depth, b.rowStride));
      for (auto [i, lanes] : llvm::enumerate(vectors))
        row.push_back(blocking.packsRight
                          ? reader.loadPacked(b.buffer, k.add(at, int64_t(i) * k.lanes), {lanes.width, lanes.width})
                          : k.load(b.buffer, k.add(at, int64_t(i) * k.lanes), lanes));
      Value from = k.add(a.offset, k.mul(depth, a.columnStride));
      prefetchNext(depth, firstRow, rows, panel);
      for (int64_t i = 0; i < rows; ++i) {
        Value element = blocking.factors ? reader.step(a.buffer, k.add(from, i * a.rowStride))
                                         : k.loadScalar(a.buffer, k.add(from, i * a.rowStride));
        for (size_t j = 0; j < vectors.size(); ++j)
          next.push_back(reader.multiplyAdd(element, row[j], carried[next.size()]));
      }
      return next;
    });
  }

  /// Writes the sums of a slice to the result, or adds them to it or to those that wait.
  void finishSums(Value firstRow, Value panel, ArrayRef<Lanes> vectors, llvm::function_ref<void(SumBody)> forEachSum) {
    Value c = k.add(k.add(result.offset, k.mul(firstRow, result.rowStride)), k.mul(panel, blocking.panelColumns));
    auto place = [&](Value row, size_t vector) {
      return k.add(k.add(c, k.mul(row, result.rowStride)), int64_t(vector) * k.lanes);
    };
    if (blocking.keepsSums)
      return keepSums(firstRow, panel, vectors, forEachSum, place);
    auto store = [&](bool addsToEarlierSlices) {
      forEachSum([&](Value sum, Value row, size_t vector) {
        Value total =
            addsToEarlierSlices ? k.fadd(sum, k.load(result.buffer, place(row, vector), vectors[vector])) : sum;
        k.store(total, result.buffer, place(row, vector), vectors[vector]);
      });
      return KernelBuilder::Values();
    };
    if (blocking.depth == blocking.k || blocking.addsToResult)
      return void(store(blocking.addsToResult));
    k.ifElse(k.isEqual(sliceFrom, k.index(0)), {}, [&] { return store(false); }, [&] { return store(true); });
  }

  /// The sums of all slices but the last wait on the stack, in f32.
  void keepSums(Value firstRow, Value panel, ArrayRef<Lanes> vectors, llvm::function_ref<void(SumBody)> forEachSum,
                llvm::function_ref<Value(Value row, size_t vector)> place) {
    Value corner = k.add(k.mul(k.sub(firstRow, firstBlockRow), sumStride),
                         k.mul(k.sub(panel, firstColumnPanel), blocking.panelColumns));
    auto kept = [&](Value row, size_t vector) {
      return k.add(k.add(corner, k.mul(row, sumStride)), int64_t(vector) * k.lanes);
    };
    auto keep = [&](bool adds) {
      forEachSum([&](Value sum, Value row, size_t vector) {
        Lanes whole = {vectors[vector].width, vectors[vector].width};
        Value at = kept(row, vector);
        k.store(adds ? k.fadd(sum, k.load(keptSums, at, whole)) : sum, keptSums, at, whole);
      });
      return KernelBuilder::Values();
    };
    auto finish = [&] {
      forEachSum([&](Value sum, Value row, size_t vector) {
        Lanes lanes = vectors[vector];
        k.store(k.fadd(sum, k.load(keptSums, kept(row, vector), {lanes.width, lanes.width})), result.buffer,
                place(row, vector), lanes);
      });
      return KernelBuilder::Values();
    };
    k.ifElse(
        k.isEqual(sliceFrom, k.index(0)), {}, [&] { return keep(false); },
        [&] {
          Value isLast = k.isEqual(k.add(sliceFrom, sliceLength), k.index(blocking.k));
          return k.ifElse(isLast, {}, finish, [&] { return keep(true); });
        });
  }

  KernelBuilder &k;
  const GemmBlocking &blocking;
  MatrixRef left, right, result;
  FactorReader reader;
  const int64_t perStep; ///< elements of the depth
  Value packedRight, packedLeft, keptSums, tileSums, firstBlockRow;
  int64_t sumStride = 0;  ///< of the sums that are kept
  int64_t leftStride = 0; ///< of the packed rows
  Value firstRowPanel, endRowPanel, firstColumnPanel, endColumnPanel, sliceFrom, sliceLength;
};
} // namespace

void emitGemmBlock(KernelBuilder &kernel, const GemmBlocking &blocking, const MatrixRef &left, const MatrixRef &right,
                   const MatrixRef &result, Value rowBlock, Value columnBlock) {
  BlockEmitter(kernel, blocking, left, right, result).emit(rowBlock, columnBlock);
}

// Pairs of elements, then pairs of pairs, change places inside each part of 16 bytes; then the parts themselves. Each
// step is one two-operand shuffle instruction.
SmallVector<Value> transposeSquare(KernelBuilder &k, ArrayRef<Value> rows) {
  int64_t lanes = int64_t(rows.size());
  auto shuffle = [&](Value a, Value b, llvm::function_ref<int64_t(int64_t lane)> pick) -> Value {
    SmallVector<int64_t> picks;
    for (int64_t lane = 0; lane < lanes; ++lane)
      picks.push_back(pick(lane));
    return k.create<vector::ShuffleOp>(a, b, picks);
  };
  SmallVector<Value> singles(lanes), pairs(lanes), turned(lanes);
  for (int64_t i = 0; i < lanes; i += 2)
    for (int64_t high = 0; high < 2; ++high) // of a, b: a0 b0 a1 b1, or a2 b2 a3 b3, in each part
      singles[i + high] = shuffle(rows[i], rows[i + 1], [&](int64_t lane) {
        return lane / 4 * 4 + 2 * high + lane % 4 / 2 + (lane % 2) * lanes;
      });
  for (int64_t i = 0; i < lanes; i += 4)
    for (int64_t j = 0; j < 4; ++j) // of a, b: a0 a1 b0 b1, or a2 a3 b2 b3, in each part
      pairs[i + j] = shuffle(singles[i + j / 2], singles[i + j / 2 + 2], [&](int64_t lane) {
        return lane / 4 * 4 + 2 * (j % 2) + lane % 2 + (lane % 4 / 2) * lanes;
      });
  if (lanes == 4)
    return pairs;
  // pairs[4g + j] holds in its part p the elements (4g … 4g+3, 4p + j): parts p and vectors g change places.
  auto part = [&](Value a, Value b, ArrayRef<int64_t> parts) {
    int64_t perVector = lanes / 4;
    return shuffle(a, b, [&](int64_t lane) {
      int64_t from = parts[lane / 4];
      return from % perVector * 4 + lane % 4 + from / perVector * lanes;
    });
  };
  for (int64_t j = 0; j < 4; ++j) {
    if (lanes == 8) {
      turned[j] = part(pairs[j], pairs[4 + j], {0, 2});
      turned[4 + j] = part(pairs[j], pairs[4 + j], {1, 3});
      continue;
    }
    Value low01 = part(pairs[j], pairs[4 + j], {0, 1, 4, 5}), high01 = part(pairs[j], pairs[4 + j], {2, 3, 6, 7});
    Value low23 = part(pairs[8 + j], pairs[12 + j], {0, 1, 4, 5}),
          high23 = part(pairs[8 + j], pairs[12 + j], {2, 3, 6, 7});
    turned[j] = part(low01, low23, {0, 2, 4, 6});
    turned[4 + j] = part(low01, low23, {1, 3, 5, 7});
    turned[8 + j] = part(high01, high23, {0, 2, 4, 6});
    turned[12 + j] = part(high01, high23, {1, 3, 5, 7});
  }
  return turned;
}

} // namespace dg::codegen
