// SPDX-License-Identifier: Apache-2.0
// A trip is a sequence of levels: the products whose rows are known, then one pass over the columns for everything that
// follows from them without another product. Slices, borders and joins of columns are places, not copies:
//
//   level 0   what needs no product                          %p = dg.panel_product %h, %w      level 1
//   level n   products of what level n - 1 has stored,       %s = dg.add %p, %x                one pass over the
//   columns
//             then what follows from them                    %i = dg.slice %s; dg.sigmoid …    of a gate
//
// Columns are cut where the places of a value change (each gate of a join, each border), so that a pass of as many
// columns as a gate has computes all gates, and what they share once.
#include "codegen/kernels/RowScanKernels.h"

#include "codegen/emit/ElementArithmetic.h"
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/PanelProduct.h"
#include "codegen/emit/RowCopy.h"
#include "codegen/kernels/ElementwiseKernels.h"
#include "ir/dialect/ElementTypes.h"
#include "ir/ops/arrangement/MovementOps.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/product/BlockedOps.h"
#include "ir/ops/structure/GraphOps.h"

#include "llvm/Support/MathExtras.h"

#include <map>
#include <set>

using namespace mlir;

namespace dg::codegen {

namespace {

int64_t widthOf(Value value) { return shapeOf(value).back(); }

/// How the rows of a scan's body depend on each other: not at all, or there is no plan.
class RowPlan {
public:
  explicit RowPlan(ir::ScanOp scan) : scan(scan), body(scan.getBody().front()) {
    numCarried = unsigned(scan.getNumCarried()), numScanned = unsigned(scan.getNumScanned());
    returned.assign(body.back().operand_begin(), body.back().operand_end());
    isPossible = scan.getNumSums() == 0 && numCarried > 0 && scan.getTrips() > 0 && hasOneReal() && fits();
    if (isPossible)
      findLevels();
  }

  bool isRow(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getRank() == 2 && type.getDimSize(0) == rows && type.getDimSize(1) > 0;
  }
  bool isWhole(Value value) const {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument && argument.getArgNumber() >= numCarried + numScanned;
  }
  int64_t levelOf(Value value) const {
    Operation *op = value.getDefiningOp();
    return op ? levels.lookup(op) : 0;
  }
  static bool isProduct(Value value) { return isa_and_nonnull<ir::PanelProductOp>(value.getDefiningOp()); }

  ir::ScanOp scan;
  Block &body;
  unsigned numCarried = 0, numScanned = 0;
  int64_t rows = 0;
  SmallVector<Value> returned;
  bool isPossible = false;
  int64_t numLevels = 1;
  /// Results of ops, other than products, that later levels read: they are stored.
  llvm::SetVector<Value> stored;

private:
  bool fits() {
    auto first = cast<RankedTensorType>(body.getArgument(0).getType());
    if (first.getRank() != 2 || first.getNumElements() == 0)
      return false;
    rows = first.getDimSize(0);
    for (unsigned i = 0; i < numCarried; ++i)
      if (!isRow(body.getArgument(i)) || !isFloat(body.getArgument(i)))
        return false;
    for (Value value : returned)
      if (!isRow(value) || !isFloat(value))
        return false;
    for (Operation &op : body.without_terminator())
      if (!fits(op))
        return false;
    return llvm::any_of(body, [](Operation &op) { return isa<ir::PanelProductOp>(op); });
  }

  /// A kernel computes in f64 where any buffer has it.
  bool hasOneReal() {
    auto isOther = [&](Type type) {
      Type element = getElementTypeOrSelf(type);
      return isa<FloatType>(element) && element.isF64() != getElementTypeOrSelf(body.getArgument(0).getType()).isF64();
    };
    return llvm::none_of(scan->getOperandTypes(), isOther) && llvm::none_of(scan->getResultTypes(), isOther);
  }

  static bool isFloat(Value value) { return isa<FloatType>(cast<RankedTensorType>(value.getType()).getElementType()); }

  bool fits(Operation &op) {
    if (isa<ir::ConstantOp>(op))
      return true;
    if (op.getNumResults() != 1 || !isRow(op.getResult(0)))
      return false;
    if (auto product = dyn_cast<ir::PanelProductOp>(op))
      return isRow(product.getInput()) && isWhole(product.getPanels());
    if (auto slice = dyn_cast<ir::SliceOp>(op)) {
      bool hasSteps = slice.getSteps() && llvm::any_of(*slice.getSteps(), [](int64_t step) { return step != 1; });
      return isRow(slice.getInput()) && !hasSteps;
    }
    if (auto pad = dyn_cast<ir::PadConstantOp>(op)) {
      bool hasInterior =
          pad.getInterior() && llvm::any_of(*pad.getInterior(), [](int64_t between) { return between != 0; });
      return isRow(pad.getInput()) && !pad.getFill() && !hasInterior;
    }
    if (auto concat = dyn_cast<ir::ConcatOp>(op))
      return concat.getDim() == 1 && llvm::all_of(concat.getInputs(), [&](Value input) { return isRow(input); });
    if (!isa<ir::ExpandOp>(op) && !llvm::is_contained(elementFunctions(), op.getName().getStringRef()))
      return false;
    return llvm::all_of(op.getOperands(), [&](Value operand) {
      // What is repeated along the columns is a number in memory.
      bool isMade = operand.getDefiningOp() && !operand.getDefiningOp<ir::ConstantOp>();
      return isMade ? isRow(operand) && widthOf(operand) == widthOf(op.getResult(0)) : shapeOf(operand).size() <= 2;
    });
  }

  static const std::set<StringRef> &elementFunctions() {
    static const std::set<StringRef> names = [] {
      SmallVector<StringRef> all = elementFunctionNames();
      return std::set<StringRef>(all.begin(), all.end());
    }();
    return names;
  }

  void findLevels() {
    for (Operation &op : body.without_terminator()) {
      int64_t level = 0;
      for (Value operand : op.getOperands())
        level = std::max(level, levelOf(operand));
      levels[&op] = isa<ir::PanelProductOp>(op) ? level + 1 : level;
      numLevels = std::max(numLevels, levels[&op] + 1);
    }
    for (Operation &op : body.without_terminator())
      for (Value operand : op.getOperands())
        if (levelOf(operand) != levels[&op] && !isa<ir::PanelProductOp>(op))
          store(operand);
    // A product reads rows, also of values of its own making at level 0.
    for (auto product : body.getOps<ir::PanelProductOp>())
      if (Value input = product.getInput(); input.getDefiningOp() && !isProduct(input))
        stored.insert(input);
  }

  /// For later levels. Slices are places of what is stored, constants have none, and bools are computed again.
  void store(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || isProduct(value) || isa<ir::ConstantOp>(op))
      return;
    if (!isa<ir::SliceOp>(op) && isFloat(value))
      return void(stored.insert(value));
    for (Value operand : op->getOperands())
      store(operand);
  }

  DenseMap<Operation *, int64_t> levels;
};

/// Rows of a buffer on the stack.
struct Room {
  int64_t stride; ///< elements from row to row
  bool isDouble;  ///< there are two, for the state before and after a trip
};

/// Elements from row to row: no two rows start in the same line of the first-level cache.
int64_t strideFor(int64_t width) { return int64_t(llvm::alignTo(width, 16)) + 16; }

/// Columns that a product writes.
int64_t paddedColumns(ir::PanelProductOp product) {
  return shapeOf(product.getPanels())[0] * shapeOf(product.getPanels())[2];
}

/// What is kept on the stack of a tile, in an order that does not change.
SmallVector<std::pair<Value, Room>> roomsOf(const RowPlan &plan) {
  SmallVector<std::pair<Value, Room>> rooms;
  for (unsigned i = 0; i < plan.numCarried; ++i)
    rooms.push_back({plan.body.getArgument(i), {strideFor(widthOf(plan.body.getArgument(i))), true}});
  for (auto product : plan.body.getOps<ir::PanelProductOp>())
    rooms.push_back({product.getResult(), {strideFor(paddedColumns(product)), false}});
  for (Value value : plan.stored)
    rooms.push_back({value, {strideFor(widthOf(value)), false}});
  return rooms;
}

/// Rows of a tile: each tile reads all weights in each trip, so that a tile has some rows; few batches are enough for
/// two threads, and what a tile keeps fits on its stack. 0: not even one row does.
int64_t rowsPerTile(const RowPlan &plan) {
  int64_t tiles = plan.rows <= 1 ? 1 : plan.rows <= 16 ? 2 : int64_t(llvm::alignTo(llvm::divideCeil(plan.rows, 16), 4));
  int64_t rows = llvm::divideCeil(plan.rows, tiles), bytesPerRow = 0;
  for (auto &[value, room] : roomsOf(plan))
    bytesPerRow += room.stride * (room.isDouble ? 2 : 1) * ir::elementBytes(getElementTypeOrSelf(value.getType()));
  constexpr int64_t mostBytes = KernelBuilder::mostStackBytes - (64 << 10);
  return std::min(rows, mostBytes / bytesPerRow);
}

class RowScanEmitter {
public:
  RowScanEmitter(KernelBuilder &k, ir::ScanOp scan) : k(k), plan(scan), scan(scan) {
    tileRows = rowsPerTile(plan);
    for (auto &[value, room] : roomsOf(plan)) {
      rooms[value] = room;
      memory[value] = k.stack(tileRows * room.stride * (room.isDouble ? 2 : 1),
                              cast<RankedTensorType>(value.getType()).getElementType());
    }
  }

  void emit() {
    int64_t tiles = llvm::divideCeil(plan.rows, tileRows), rest = plan.rows % tileRows;
    k.setTiles(tiles);
    firstRow = k.mul(k.tile(), tileRows);
    if (rest == 0)
      return emitTile(tileRows);
    if (tiles == 1)
      return emitTile(rest);
    auto of = [&](int64_t rows) {
      return [this, rows] {
        emitTile(rows);
        return KernelBuilder::Values();
      };
    };
    k.ifElse(k.isEqual(k.tile(), k.index(tiles - 1)), {}, of(rest), of(tileRows));
  }

private:
  unsigned resultBuffer(unsigned index) { return scan.getNumOperands() + index; }

  void emitTile(int64_t rows) {
    numRows = rows;
    int64_t trips = scan.getTrips();
    for (unsigned i = 0; i < plan.numCarried; ++i) {
      Value argument = plan.body.getArgument(i);
      int64_t width = widthOf(argument);
      k.loop(0, rows, 1, [&](Value row) {
        copyRow(k, k.buffer(i), k.mul(k.add(firstRow, row), width), memory[argument],
                k.mul(row, rooms[argument].stride), width);
      });
    }
    k.loop(0, trips, 1, [&](Value number) {
      parity = k.mod(number, 2);
      trip = scan.getReverse() ? k.sub(k.index(trips - 1), number) : number;
      for (int64_t level = 0; level < plan.numLevels; ++level)
        emitLevel(level);
    });
    parity = k.index(trips % 2);
    for (unsigned i = 0; i < plan.numCarried; ++i) {
      Value argument = plan.body.getArgument(i);
      int64_t width = widthOf(argument);
      k.loop(0, rows, 1, [&](Value row) {
        copyRow(k, memory[argument], k.add(roomStart(argument, parity), k.mul(row, rooms[argument].stride)),
                k.buffer(resultBuffer(i)), k.mul(k.add(firstRow, row), width), width);
      });
    }
  }

  /// Where the rows of a room start; of two the one of this parity.
  Value roomStart(Value value, Value whichParity) {
    Room room = rooms[value];
    return room.isDouble ? k.mul(whichParity, tileRows * room.stride) : k.index(0);
  }

  //===- Where values lie ----------------------------------------------------------------------------------------===//

  /// The rows of a value that is in memory.
  MatrixRef rowsOf(Value value) {
    if (rooms.contains(value))
      return {memory[value], roomStart(value, parity), rooms[value].stride, 1};
    // An argument that is read where its operand lies.
    auto argument = cast<BlockArgument>(value);
    ArrayRef<int64_t> shape = shapeOf(value);
    int64_t columns = shape.empty() ? 1 : shape.back();
    bool hasRows = shape.size() == 2 && shape[0] == plan.rows && plan.rows > 1;
    Value offset = hasRows ? k.mul(firstRow, columns) : k.index(0);
    if (!plan.isWhole(value))
      offset = k.add(offset, k.mul(trip, numElements(value)));
    return {k.buffer(argument.getArgNumber()), offset, hasRows ? columns : 0, 1};
  }

  //===- Levels --------------------------------------------------------------------------------------------------===//

  /// Some columns of a value that is written, and where to.
  struct Root {
    Value value;
    int64_t from;
    SmallVector<MatrixRef> targets; ///< offset at column 0 of the value
  };

  void emitLevel(int64_t level) {
    present = level;
    for (auto product : plan.body.getOps<ir::PanelProductOp>())
      if (plan.levelOf(product.getResult()) == level)
        emitPanelProduct(k, numRows, widthOf(product.getInput()), shapeOf(product.getPanels())[0],
                         rowsOf(product.getInput()), k.buffer(cast<BlockArgument>(product.getPanels()).getArgNumber()),
                         rowsOf(product.getResult()));
    // Columns that are written, by how many there are: what is as wide goes into one pass.
    llvm::MapVector<Value, SmallVector<MatrixRef>> targets;
    for (auto [index, value] : llvm::enumerate(plan.returned))
      if (plan.levelOf(value) == level)
        targets[value].push_back(targetOf(unsigned(index), value));
    for (Value value : plan.stored)
      if (plan.levelOf(value) == level)
        targets[value].push_back({memory[value], k.index(0), rooms[value].stride, 1});
    std::map<int64_t, SmallVector<Root>> passes;
    for (auto &[value, places] : targets) {
      SmallVector<int64_t> cuts = cutsOf(value);
      for (size_t i = 0; i + 1 < cuts.size(); ++i)
        passes[cuts[i + 1] - cuts[i]].push_back({value, cuts[i], places});
    }
    for (auto &[width, roots] : passes)
      emitPass(width, roots);
  }

  /// Where a returned value goes: the next state, or this trip's slice of a stacked result.
  MatrixRef targetOf(unsigned index, Value value) {
    if (index < plan.numCarried) {
      Value argument = plan.body.getArgument(index);
      return {memory[argument], roomStart(argument, k.sub(k.index(1), parity)), rooms[argument].stride, 1};
    }
    int64_t width = widthOf(value);
    Value offset = k.add(k.mul(trip, plan.rows * width), k.mul(firstRow, width));
    return {k.buffer(resultBuffer(index)), offset, width, 1};
  }

  void emitPass(int64_t width, ArrayRef<Root> roots) {
    k.loop(0, numRows, 1, [&](Value row) {
      k.loopVectors(width, [&](Value column, Lanes lanes) {
        known.clear();
        for (const Root &root : roots) {
          Value value = evaluate(root.value, root.from, row, column, lanes);
          for (const MatrixRef &target : root.targets)
            k.store(value, target.buffer,
                    k.add(k.add(target.offset, k.mul(row, target.rowStride)), k.add(column, root.from)), lanes);
        }
      });
    });
  }

  //===- Cuts ----------------------------------------------------------------------------------------------------===//

  /// Whether the value is read from memory at this level.
  bool isStoredBefore(Value value) {
    return isa<BlockArgument>(value) || RowPlan::isProduct(value) ||
           (plan.stored.contains(value) && plan.levelOf(value) < present);
  }

  /// Columns at which the places of a value change, with both ends.
  SmallVector<int64_t> cutsOf(Value value) {
    std::set<int64_t> cuts{0, widthOf(value)};
    std::set<std::pair<void *, int64_t>> visited;
    addCuts(value, 0, widthOf(value), cuts, visited);
    // Whoever reads parts of it computes these parts in the same pass.
    for (Operation *user : value.getUsers())
      if (auto slice = dyn_cast<ir::SliceOp>(user))
        cuts.insert({slice.getStarts()[1], slice.getStarts()[1] + widthOf(slice.getResult())});
    return SmallVector<int64_t>(cuts.begin(), cuts.end());
  }

  /// Column c of `value` is column c + shift of the root.
  void addCuts(Value value, int64_t shift, int64_t rootWidth, std::set<int64_t> &cuts,
               std::set<std::pair<void *, int64_t>> &visited) {
    if (isStoredBefore(value) || !visited.insert({value.getAsOpaquePointer(), shift}).second)
      return;
    auto cut = [&](int64_t at) {
      if (at + shift > 0 && at + shift < rootWidth)
        cuts.insert(at + shift);
    };
    Operation *op = value.getDefiningOp();
    if (auto slice = dyn_cast<ir::SliceOp>(op))
      return addCuts(slice.getInput(), shift - slice.getStarts()[1], rootWidth, cuts, visited);
    if (auto pad = dyn_cast<ir::PadConstantOp>(op)) {
      int64_t low = pad.getLow()[1];
      cut(low), cut(low + widthOf(pad.getInput()));
      return addCuts(pad.getInput(), shift + low, rootWidth, cuts, visited);
    }
    if (auto concat = dyn_cast<ir::ConcatOp>(op)) {
      int64_t start = 0;
      for (Value input : concat.getInputs()) {
        cut(start);
        addCuts(input, shift + start, rootWidth, cuts, visited);
        start += widthOf(input);
      }
      return;
    }
    for (Value operand : op->getOperands())
      if (operand.getDefiningOp())
        addCuts(operand, shift, rootWidth, cuts, visited);
  }

  //===- Values --------------------------------------------------------------------------------------------------===//

  /// Columns from `from` + `column` on of a row of the value.
  Value evaluate(Value value, int64_t from, Value row, Value column, Lanes lanes) {
    auto key = std::pair(value.getAsOpaquePointer(), from);
    if (auto found = known.find(key); found != known.end())
      return found->second;
    Value result = compute(value, from, row, column, lanes);
    known[key] = result;
    return result;
  }

  Value compute(Value value, int64_t from, Value row, Value column, Lanes lanes) {
    Type element = cast<RankedTensorType>(value.getType()).getElementType();
    if (isStoredBefore(value)) {
      MatrixRef rows = rowsOf(value);
      Value start = k.add(rows.offset, k.mul(row, rows.rowStride));
      if (shapeOf(value).empty() || widthOf(value) == 1)
        return k.loadSplat(rows.buffer, start, lanes);
      return k.load(rows.buffer, k.add(start, k.add(column, from)), lanes);
    }
    Operation *op = value.getDefiningOp();
    if (auto constant = dyn_cast<ir::ConstantOp>(op))
      return elementConstant(k, element, constant.getValue().convertToDouble(), k.splat(0.0, lanes.width));
    if (auto slice = dyn_cast<ir::SliceOp>(op))
      return evaluate(slice.getInput(), from + slice.getStarts()[1], row, column, lanes);
    if (auto pad = dyn_cast<ir::PadConstantOp>(op)) {
      int64_t inside = from - pad.getLow()[1];
      if (inside < 0 || inside >= widthOf(pad.getInput()))
        return elementConstant(k, element, 0, k.splat(0.0, lanes.width));
      return evaluate(pad.getInput(), inside, row, column, lanes);
    }
    if (auto concat = dyn_cast<ir::ConcatOp>(op)) {
      for (Value input : concat.getInputs()) {
        if (from < widthOf(input))
          return evaluate(input, from, row, column, lanes);
        from -= widthOf(input);
      }
    }
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(evaluate(operand, isRepeated(operand, value) ? 0 : from, row, column, lanes));
    return isa<ir::ExpandOp>(op) ? operands[0] : emitElementFunction(k, op, operands);
  }

  /// Whether all columns of `value` see one number of the operand.
  static bool isRepeated(Value operand, Value value) {
    return shapeOf(operand).empty() || widthOf(operand) != widthOf(value);
  }

  KernelBuilder &k;
  RowPlan plan;
  ir::ScanOp scan;
  int64_t tileRows, numRows = 0, present = 0;
  DenseMap<Value, Room> rooms;
  DenseMap<Value, Value> memory;
  Value firstRow, trip, parity;
  std::map<std::pair<void *, int64_t>, Value> known; ///< of one vector of columns
};
} // namespace

bool isRowScan(ir::ScanOp scan) {
  RowPlan plan(scan);
  return plan.isPossible && rowsPerTile(plan) > 0;
}

void emitRowScan(KernelBuilder &kernel, ir::ScanOp scan) { RowScanEmitter(kernel, scan).emit(); }

} // namespace dg::codegen
