// SPDX-License-Identifier: Apache-2.0
#include "codegen/kernels/ControlKernels.h"

#include "codegen/emit/ElementArithmetic.h"
#include "codegen/emit/KernelBuilder.h"
#include "codegen/emit/LoopNest.h"
#include "codegen/emit/Places.h"
#include "codegen/emit/RowCopy.h"
#include "ir/ops/arrangement/ShapeOps.h"
#include "ir/ops/structure/ControlOps.h"
#include "ir/ops/structure/GraphOps.h"
#include "ir/ops/structure/LiteralOps.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace dg::codegen {

namespace {
/// How an op hands its operands to its bodies.
struct BodyUse {
  SmallVector<Region *> bodies;
  unsigned firstOperand = 0;  ///< the operand of argument 0
  unsigned numOwn = 0;        ///< arguments with memory of their own; the others are read where the operand lies
  unsigned numCarried = 0;    ///< arguments that get what was returned
  unsigned firstReturned = 0; ///< the returned value of the first carried one
};

BodyUse useOf(Operation *op) {
  BodyUse use;
  for (Region &region : op->getRegions())
    use.bodies.push_back(&region);
  if (auto scan = dyn_cast<ir::ScanOp>(op)) {
    use.numCarried = unsigned(scan.getNumCarried());
    use.numOwn = unsigned(scan.getNumCarried() + scan.getNumScanned());
    return use;
  }
  use.firstOperand = 1;
  if (auto loop = dyn_cast<ir::WhileOp>(op)) {
    use.numCarried = use.numOwn = unsigned(loop.getNumCarried());
    use.firstReturned = 1;
  }
  return use;
}

/// Which buffer each value of a body lies in. Bodies start with their arguments at aligned addresses: slices of scanned
/// tensors are copied, since kernels may count on the alignment of whole buffers.
class BodyBuffers {
public:
  BodyBuffers(Operation *op, const BodyKernels &kernels) {
    BodyUse use = useOf(op);
    numOuter = op->getNumOperands() + op->getNumResults();
    for (Region *body : use.bodies) {
      for (auto [index, argument] : llvm::enumerate(body->getArguments()))
        buffers[argument] = index < use.numOwn ? add(argument.getType()) : use.firstOperand + unsigned(index);
      for (Operation &inner : body->front())
        addValuesOf(inner, kernels);
    }
    // A carried value that moves to another place is kept aside until all have moved.
    Region &body = *use.bodies[0];
    auto returned = body.front().back().getOperands().drop_front(use.firstReturned);
    for (unsigned i = 0; i < use.numCarried; ++i) {
      unsigned from = buffers.lookup(returned[i]);
      bool isMoved = from != of(body.getArgument(i)) && from >= numOuter && from < numOuter + use.numCarried;
      if (isMoved)
        aside[i] = add(returned[i].getType());
    }
  }

  unsigned of(Value value) const { return buffers.lookup(value); }
  std::optional<unsigned> asideOf(unsigned carried) const {
    auto found = aside.find(carried);
    return found == aside.end() ? std::nullopt : std::optional<unsigned>(found->second);
  }
  unsigned firstWorkspaceOf(Operation *op) const { return firstWorkspace.lookup(op); }
  SmallVector<RankedTensorType> types;

private:
  void addValuesOf(Operation &op, const BodyKernels &kernels) {
    if (auto reshape = dyn_cast<ir::ReshapeOp>(op)) {
      buffers[reshape.getResult()] = buffers.lookup(reshape.getInput());
      return;
    }
    for (Value result : op.getResults())
      buffers[result] = add(result.getType());
    if (auto kernel = kernels.find(&op); kernel != kernels.end()) {
      firstWorkspace[&op] = numOuter + unsigned(types.size());
      for (RankedTensorType type : kernel->second.workspaces)
        add(type);
    }
  }

  unsigned add(Type type) {
    types.push_back(cast<RankedTensorType>(type));
    return numOuter + unsigned(types.size()) - 1;
  }

  unsigned numOuter;
  DenseMap<Value, unsigned> buffers;
  DenseMap<Operation *, unsigned> firstWorkspace;
  DenseMap<unsigned, unsigned> aside;
};

/// Calls the kernels of a body, tile by tile.
void callBody(KernelBuilder &k, Block &body, const BodyBuffers &buffers, const BodyKernels &kernels) {
  for (Operation &op : body) {
    auto found = kernels.find(&op);
    if (found == kernels.end() || found->second.tiles == 0)
      continue;
    SmallVector<Value> arguments;
    for (Value operand : op.getOperands())
      arguments.push_back(k.buffer(buffers.of(operand)));
    for (Value result : op.getResults())
      arguments.push_back(k.buffer(buffers.of(result)));
    for (size_t i = 0; i < found->second.workspaces.size(); ++i)
      arguments.push_back(k.buffer(buffers.firstWorkspaceOf(&op) + unsigned(i)));
    arguments.append({callOfInner(k), k.step(), k.seed()});
    k.loop(0, found->second.tiles, 1, [&](Value tile) {
      SmallVector<Value> all(arguments);
      all.push_back(tile);
      k.create<func::CallOp>(found->second.symbol, TypeRange(), all);
    });
  }
}

void copyAll(KernelBuilder &k, unsigned from, Value fromAt, unsigned to, Value toAt, int64_t count) {
  if (count > 0 && from != to)
    copyRow(k, k.buffer(from), fromAt, k.buffer(to), toAt, count);
}

/// Constants of a body are written once, before it runs.
LogicalResult fillConstants(KernelBuilder &k, Block &body, const BodyBuffers &buffers) {
  for (Operation &op : body) {
    if (isa<ir::LiteralOp>(op))
      return op.emitOpError(
          "is in a graph inside another, whose kernel has no memory for it: pass it in as an operand");
    if (auto constant = dyn_cast<ir::ConstantOp>(op)) {
      Value buffer = k.buffer(buffers.of(constant.getResult()));
      fillRow(k, numberFor(k, buffer, constant.getValue().convertToDouble()), buffer, k.index(0),
              numElements(constant.getResult()));
    }
  }
  return success();
}

/// What a trip returned becomes what the next one gets.
void carry(KernelBuilder &k, Block &body, ValueRange returned, const BodyBuffers &buffers) {
  Value start = k.index(0);
  for (unsigned i = 0; i < returned.size(); ++i)
    if (auto aside = buffers.asideOf(i))
      copyAll(k, buffers.of(returned[i]), start, *aside, start, numElements(returned[i]));
  for (unsigned i = 0; i < returned.size(); ++i) {
    auto aside = buffers.asideOf(i);
    copyAll(k, aside ? *aside : buffers.of(returned[i]), start, buffers.of(body.getArgument(i)), start,
            numElements(returned[i]));
  }
}

LogicalResult emitScan(KernelBuilder &k, ir::ScanOp scan, const BodyKernels &kernels) {
  Block &body = scan.getBody().front();
  BodyBuffers buffers(scan, kernels);
  auto returned = body.back().getOperands();
  unsigned carried = unsigned(scan.getNumCarried()), scanned = unsigned(scan.getNumScanned()),
           firstResult = scan.getNumOperands(), firstSum = carried + scan.getNumYielded();
  int64_t trips = scan.getTrips();
  Value start = k.index(0);
  if (failed(fillConstants(k, body, buffers)))
    return failure();
  for (unsigned i = 0; i < carried; ++i)
    copyAll(k, i, start, buffers.of(body.getArgument(i)), start, numElements(body.getArgument(i)));
  for (unsigned i = firstSum; i < scan.getNumResults(); ++i)
    fillRow(k, numberFor(k, k.buffer(firstResult + i), 0), k.buffer(firstResult + i), start,
            numElements(scan.getResult(i)));

  k.loop(0, trips, 1, [&](Value trip) {
    Value at = scan.getReverse() ? k.sub(k.index(trips - 1), trip) : trip;
    for (unsigned i = carried; i < carried + scanned; ++i) {
      int64_t count = numElements(body.getArgument(i));
      copyAll(k, i, k.mul(at, count), buffers.of(body.getArgument(i)), start, count);
    }
    callBody(k, body, buffers, kernels);
    for (unsigned i = carried; i < firstSum; ++i) {
      int64_t count = numElements(returned[i]);
      copyAll(k, buffers.of(returned[i]), start, firstResult + i, k.mul(at, count), count);
    }
    for (unsigned i = firstSum; i < scan.getNumResults(); ++i) {
      Value sum = k.buffer(firstResult + i), summand = k.buffer(buffers.of(returned[i]));
      k.loopVectors(numElements(returned[i]), [&](Value column, Lanes lanes) {
        k.store(addElements(k, k.load(sum, column, lanes), k.load(summand, column, lanes)), sum, column, lanes);
      });
    }
    carry(k, body, returned.take_front(carried), buffers);
  });
  for (unsigned i = 0; i < carried; ++i)
    copyAll(k, buffers.of(body.getArgument(i)), start, firstResult + i, start, numElements(scan.getResult(i)));
  return success();
}
LogicalResult emitIf(KernelBuilder &k, ir::IfOp op, const BodyKernels &kernels) {
  BodyBuffers buffers(op, kernels);
  LogicalResult outcome = success();
  auto emit = [&](Region &branch) -> KernelBuilder::Values {
    Block &body = branch.front();
    if (failed(fillConstants(k, body, buffers))) {
      outcome = failure();
      return {};
    }
    callBody(k, body, buffers, kernels);
    Value start = k.index(0);
    for (auto [i, value] : llvm::enumerate(body.back().getOperands()))
      copyAll(k, buffers.of(value), start, op.getNumOperands() + unsigned(i), start, numElements(value));
    return {};
  };
  k.ifElse(
      k.loadScalar(k.buffer(0), k.index(0)), TypeRange(), [&] { return emit(op.getThen()); },
      [&] { return emit(op.getOtherwise()); });
  return outcome;
}

LogicalResult emitWhile(KernelBuilder &k, ir::WhileOp op, const BodyKernels &kernels) {
  Block &body = op.getBody().front();
  BodyBuffers buffers(op, kernels);
  unsigned carried = unsigned(op.getNumCarried());
  auto returned = body.back().getOperands();
  Value start = k.index(0);
  if (failed(fillConstants(k, body, buffers)))
    return failure();
  for (unsigned i = 0; i < carried; ++i)
    copyAll(k, 1 + i, start, buffers.of(body.getArgument(i)), start, numElements(body.getArgument(i)));
  Value first = k.loadScalar(k.buffer(0), start);
  k.create<scf::WhileOp>(
      TypeRange{start.getType()}, ValueRange{first, start},
      [&](OpBuilder &, Location, ValueRange state) {
        Value goesOn = state[0];
        if (op.getMaxTrips())
          goesOn = k.create<arith::AndIOp>(goesOn, k.isLess(state[1], k.index(int64_t(*op.getMaxTrips()))));
        k.create<scf::ConditionOp>(goesOn, ValueRange{state[1]});
      },
      [&](OpBuilder &, Location, ValueRange state) {
        callBody(k, body, buffers, kernels);
        // Read before a carried value may take its place.
        Value again = k.loadScalar(k.buffer(buffers.of(returned[0])), k.index(0));
        carry(k, body, returned.drop_front(), buffers);
        k.create<scf::YieldOp>(ValueRange{again, k.add(state[0], 1)});
      });
  for (unsigned i = 0; i < carried; ++i)
    copyAll(k, buffers.of(body.getArgument(i)), start, op.getNumOperands() + i, start, numElements(op.getResult(i)));
  return success();
}
} // namespace

SmallVector<RankedTensorType> workspacesOf(Operation *op, const BodyKernels &kernels) {
  return BodyBuffers(op, kernels).types;
}

LogicalResult emitControl(KernelBuilder &kernel, Operation *op, const BodyKernels &kernels) {
  if (auto branch = dyn_cast<ir::IfOp>(op))
    return emitIf(kernel, branch, kernels);
  if (auto loop = dyn_cast<ir::WhileOp>(op))
    return emitWhile(kernel, loop, kernels);
  return emitScan(kernel, cast<ir::ScanOp>(op), kernels);
}

} // namespace dg::codegen
