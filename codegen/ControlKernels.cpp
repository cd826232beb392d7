// SPDX-License-Identifier: Apache-2.0
#include "codegen/ControlKernels.h"

#include "codegen/ElementArithmetic.h"
#include "codegen/KernelBuilder.h"
#include "codegen/LoopNest.h"
#include "codegen/RowCopy.h"
#include "ir/ControlOps.h"
#include "ir/GraphOps.h"
#include "ir/ShapeOps.h"

using namespace mlir;

namespace dg::codegen {

namespace {
/// Which buffer each value of a body lies in. Bodies start with their arguments at aligned addresses: slices of scanned
/// tensors are copied, since kernels may count on the alignment of whole buffers.
class BodyBuffers {
public:
  BodyBuffers(ir::ScanOp scan, const BodyKernels &kernels) {
    numOuter = scan.getNumOperands() + scan.getNumResults();
    unsigned numOwn = unsigned(scan.getNumCarried() + scan.getNumScanned());
    for (auto [index, argument] : llvm::enumerate(scan.getBody().getArguments()))
      buffers[argument] = index < numOwn ? add(argument.getType()) : unsigned(index);
    for (Operation &op : scan.getBody().front()) {
      if (auto reshape = dyn_cast<ir::ReshapeOp>(op)) {
        buffers[reshape.getResult()] = buffers.lookup(reshape.getInput());
        continue;
      }
      for (Value result : op.getResults())
        buffers[result] = add(result.getType());
      if (auto kernel = kernels.find(&op); kernel != kernels.end()) {
        firstWorkspace[&op] = numOuter + unsigned(types.size());
        for (RankedTensorType type : kernel->second.workspaces)
          add(type);
      }
    }
    // A carried value that moves to another place is kept aside until all have moved.
    auto returned = scan.getBody().front().back().getOperands();
    for (unsigned i = 0; i < scan.getNumCarried(); ++i) {
      unsigned from = buffers.lookup(returned[i]);
      bool isMoved = from != of(scan.getBody().getArgument(i)) && from >= numOuter &&
                     from < numOuter + unsigned(scan.getNumCarried());
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
    // Learning rate and step as they came.
    arguments.append({k.buffer(k.numBuffers()), k.step()});
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

LogicalResult emitScan(KernelBuilder &k, ir::ScanOp scan, const BodyKernels &kernels) {
  Block &body = scan.getBody().front();
  BodyBuffers buffers(scan, kernels);
  auto returned = body.back().getOperands();
  unsigned carried = unsigned(scan.getNumCarried()), scanned = unsigned(scan.getNumScanned()),
           firstResult = scan.getNumOperands(), firstSum = carried + scan.getNumYielded();
  int64_t trips = scan.getTrips();
  Value start = k.index(0);
  for (Operation &op : body)
    if (auto constant = dyn_cast<ir::ConstantOp>(op)) {
      Value buffer = k.buffer(buffers.of(constant.getResult()));
      fillRow(k, numberFor(k, buffer, constant.getValue().convertToDouble()), buffer, start,
              numElements(constant.getResult()));
    }
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
    for (unsigned i = 0; i < carried; ++i)
      if (auto aside = buffers.asideOf(i))
        copyAll(k, buffers.of(returned[i]), start, *aside, start, numElements(returned[i]));
    for (unsigned i = 0; i < carried; ++i) {
      auto aside = buffers.asideOf(i);
      copyAll(k, aside ? *aside : buffers.of(returned[i]), start, buffers.of(body.getArgument(i)), start,
              numElements(returned[i]));
    }
  });
  for (unsigned i = 0; i < carried; ++i)
    copyAll(k, buffers.of(body.getArgument(i)), start, firstResult + i, start, numElements(scan.getResult(i)));
  return success();
}
} // namespace

SmallVector<RankedTensorType> workspacesOf(Operation *op, const BodyKernels &kernels) {
  return BodyBuffers(cast<ir::ScanOp>(op), kernels).types;
}

LogicalResult emitControl(KernelBuilder &kernel, Operation *op, const BodyKernels &kernels) {
  return emitScan(kernel, cast<ir::ScanOp>(op), kernels);
}

} // namespace dg::codegen
